import * as z from 'zod';
import { jobSpecSchema } from './job-spec.ts';
import { limits } from './limits.ts';
import { priceOverridesSchema } from './prices.ts';

const slots = z
  .array(z.int().min(1, 'must be at least 1').max(limits.guaranteedSlots))
  .min(1, 'must name at least one number of slots')
  .max(limits.forecastSlots, `must name at most ${limits.forecastSlots} numbers of slots`);

/** Body of `POST /plans`: what a job would take and cost, before it is submitted. Nothing is started. */
export const planRequestSchema = z.strictObject({
  spec: jobSpecSchema,
  /** Into how many tasks its stages fall, and what each reads; where it is not known, as in the job's last runs. */
  stages: z
    .record(
      z.string(),
      z.strictObject({
        tasks: z.int().min(1).max(limits.tasksPerStage),
        bytes: z.number().min(0).optional(),
      }),
    )
    .optional(),
  /** Allocations to look at; where nothing is said, a grid up to the tasks of the widest stage. */
  slots: slots.optional(),
  /** A job whose runs are to stand for this one's, where it has none of its own. */
  like: z.string().min(1).max(48).optional(),
  /** Prices that differ from the list. */
  prices: priceOverridesSchema.optional(),
});
export type PlanRequest = z.input<typeof planRequestSchema>;

const ms = z.number().min(0);

/** On what a forecast rests. */
export const planBasisSchema = z.object({
  kind: z
    .enum(['own', 'given', 'like', 'none'])
    .describe('Its own runs, a profile that was given, runs of jobs like it, or nothing.'),
  runs: z.int().min(0).describe('Finished runs behind it.'),
  says: z.string().describe('In words.'),
});

/** What a job is foretold to take and cost on a number of slots. */
export const planAllocationSchema = z.object({
  slots: z.int().min(1),
  completionMs: z.object({ p10: ms, p50: ms, p90: ms, p95: ms, p99: ms, mean: ms }),
  deadlineProbability: z.number().min(0).max(1).nullable().describe('Null without a deadline.'),
  dollars: z.number().min(0).describe('In the mean.'),
  dollarsP95: z.number().min(0),
  isCheapest: z.boolean().describe('The cheapest that meets the deadline at 95 %.'),
  isWithinBudget: z.boolean().nullable().describe('Whether its mean is within the budget; null without one.'),
});

/** Answer of `POST /plans`. */
export const planResponseSchema = z.object({
  name: z.string(),
  basis: planBasisSchema,
  deadlineMs: ms.nullable(),
  budgetDollars: z.number().nullable(),
  tasks: z.int().min(0),
  simulatedRuns: z.int().min(0).describe('Of each allocation.'),
  allocations: z.array(planAllocationSchema).describe('By slots; none where the basis is none.'),
  cheapest: z
    .int()
    .nullable()
    .describe(
      'Slots of the cheapest that meets the deadline at 95 %; null: none does, or there is no deadline.',
    ),
  prices: z.object({ asOf: z.string(), region: z.string(), overridden: z.array(z.string()) }),
});

export type PlanBasis = z.output<typeof planBasisSchema>;
export type PlanAllocation = z.output<typeof planAllocationSchema>;
export type PlanResponse = z.output<typeof planResponseSchema>;
