import * as z from 'zod';
import { longestInvocationMs } from '../core/model/time-limit.ts';
import { aboveZeroSchema, distributionSchema } from './distribution.ts';
import { atLeastZero, name, probability, type Refuse } from './scenario-parts.ts';

const throttleSchema = z.strictObject({ launchesPerS: z.number().positive(), burst: z.int().min(1) });

/** Spells of loss, each place its own: `share` of what lies there as one begins, or is written meanwhile, at even moments of it. */
const lossSchema = z.strictObject({
  everyMs: distributionSchema,
  lastsMs: distributionSchema,
  share: probability.default(1),
});
export type LossScenario = z.output<typeof lossSchema>;

const zoneSchema = z.strictObject({
  name,
  /** Of all outputs that were written in the zone. */
  losses: lossSchema.exactOptional(),
  /** Bytes per second that leave and enter the zone in all; without limit where nothing is said. */
  upBytesPerS: z.number().positive().optional(),
  downBytesPerS: z.number().positive().optional(),
});

const nodeGroupSchema = z.strictObject({
  count: z.int().min(1).max(200_000),
  slots: z.int().min(1).max(10_000).default(1),
  /** Work that a node does in a millisecond, in milliseconds of a node of speed 1; drawn once per node, and again where the draw is cut at 0. */
  speed: aboveZeroSchema.default(1),
  /** Nodes of the group that share one machine and so contend with each other; hosts are filled in order. */
  perHost: z.int().min(1).max(10_000).default(1),
  /** In place of the cluster's. */
  contention: atLeastZero.optional(),
  /** How long a node keeps the speed that it has drawn: after each such time it draws another. For good if not said. */
  speedLastsMs: distributionSchema.optional(),
  /** The disk of each of the group's hosts, which all reads and writes of its nodes share. Needs `cluster.hosts`. */
  disk: z
    .strictObject({
      /** What it carries for one stream; drawn once per host. */
      bytesPerS: distributionSchema,
      /** Of that, what two streams get in all, three, and so on; the last holds for more. */
      shares: z.array(z.number().positive()).max(64).default([]),
    })
    .optional(),
  /** Zone of all nodes of the group; without it they go round the zones. */
  zone: name.optional(),
  /** Execution environments that start cold when first used and again after they were idle for `keepWarmMs`. */
  elastic: z.boolean().default(false),
  /**
   * How much of the slowdowns of attempts is their node's, and the node's of the time: shares of what they have in common,
   * as the correlation of normal scores. Slowdowns by quantiles alone are shared so; others are drawn by attempt.
   */
  luck: z
    .strictObject({ node: probability, spell: probability, spellMs: z.int().min(1_000) })
    .refine(({ node, spell }) => node + spell <= 1, 'the shares of node and spell must be at most 1 together')
    .optional(),
  /** Spells in which a node is slower by a factor: contention from outside. */
  spells: z
    .strictObject({ everyMs: distributionSchema, lastsMs: distributionSchema, slowdown: distributionSchema })
    .optional(),
  /** Of outputs that were written on a machine of the group: losses cluster by machine. */
  losses: lossSchema.exactOptional(),
});

/** The machines of a scenario, and what there is between them. */
export const clusterSchema = z.strictObject({
  nodes: z.array(nodeGroupSchema).min(1).max(1_000),
  /**
   * Which of the nodes with a free slot gets the next attempt; `warmest` is the one used last, `spread` one with the
   * fewest busy slots (any of them, as where nodes ask for work in turn, one task at a time).
   */
  placement: z.enum(['random', 'in-order', 'warmest', 'spread']).default('random'),
  /** Whether launches may name nodes that they must not run on (they may where nothing is said); Lambda offers no choice. */
  choosesNodes: z.boolean().exactOptional(),
  zones: z
    .array(zoneSchema)
    .min(1)
    .max(500)
    .default([{ name: 'zone-a' }]),
  /**
   * Outputs stay with their workers, all of them on Fargate, as on the tier `worker-local`: the scheduler knows in which
   * zones they lie, and launches may say in which of the zones they had best start.
   */
  keepsOutputs: z.boolean().exactOptional(),
  /** What each node sends and takes in all, in place of the zones' limits; without it the zones' links are shared. */
  nodeLinks: z
    .strictObject({
      upBytesPerS: z.number().positive().optional(),
      downBytesPerS: z.number().positive().optional(),
    })
    .optional(),
  /** Bytes go between hosts, each of which sends and takes so much in all: in place of the zones' limits and nodes'. */
  hosts: z
    .strictObject({
      upBytesPerS: z.number().positive().optional(),
      downBytesPerS: z.number().positive().optional(),
    })
    .optional(),
  /** The most that one flow between nodes gets. */
  flowBytesPerS: z.number().positive().optional(),
  /** Each other busy slot of its host makes a slot slower by so much: speed / (1 + contention × others). */
  contention: atLeastZero.default(0),
  /**
   * Cores that all busy slots share, each by its speed: a slot of speed 1 uses a core, a slower one as much less of it.
   * Where they would use more than there are, all are slower in the same proportion. Without limit if not said.
   */
  cores: z.number().positive().exactOptional(),
  startMs: distributionSchema.default(0),
  cold: z
    .strictObject({
      startMs: distributionSchema,
      /** New environments per `perMs`, as Lambda adds them to a function. */
      environments: z.int().min(1).default(1_000),
      perMs: z.int().min(1).default(10_000),
      keepWarmMs: z.int().min(0).default(300_000),
    })
    .optional(),
  /**
   * Launches are asynchronous invocations: all are taken in, and wait in Lambda's queue where there is no environment
   * for them. Without it a launch for which no slot is free is refused for the moment.
   */
  queue: z
    .strictObject({
      /** Environments that may be busy at once, from a time on; the nodes where nothing is said. */
      environments: z
        .array(z.strictObject({ fromMs: z.int().min(0), count: z.int().min(0) }))
        .min(1)
        .optional(),
      /** Pauses between the tries of an event that finds no environment, and the age at which it is dropped. */
      firstPauseMs: z.int().min(1).default(1_000),
      longestPauseMs: z.int().min(1).default(300_000),
      eventAgeMs: z.int().min(1).default(21_600_000),
    })
    .optional(),
  /** How long Fargate takes to start a worker: on a node as all are, of elastic ones on a new one that nobody uses after it. */
  fargateStartMs: distributionSchema.optional(),
  /** How long a task on Fargate still runs that is stopped, since it was given up; where nothing is said it works on, as on Lambda. */
  fargateStopMs: distributionSchema.exactOptional(),
  /** Launches beyond this rate are refused for the moment. */
  throttle: throttleSchema.optional(),
  /** The same for launches on Fargate alone, whose service has a rate of its own; where nothing is said, all share one. */
  fargateThrottle: throttleSchema.exactOptional(),
  /**
   * Lambda ends an invocation after so long: shortly before, an attempt there stops itself as production's worker does, and hands
   * nothing on. Where Fargate is beside it (`fargateStartMs`), the task goes on there, as do others that would take too long; else
   * its job fails. Without limit where nothing is said.
   */
  lambdaMs: z.int().min(1_000).max(longestInvocationMs).exactOptional(),
});

export type ClusterScenario = z.output<typeof clusterSchema>;
export type NodeGroup = ClusterScenario['nodes'][number];

/** Refuses zones that do not fit each other, or their nodes. */
export function checkZones({ zones, nodes, nodeLinks }: ClusterScenario, refuse: Refuse): void {
  const names = zones.map((zone) => zone.name);
  const twice = names.findIndex((each, index) => names.indexOf(each) < index);
  if (twice >= 0) refuse(['cluster', 'zones', twice, 'name'], 'must differ from earlier ones');
  for (const [index, group] of nodes.entries()) {
    if (group.zone === undefined || names.includes(group.zone)) continue;
    refuse(['cluster', 'nodes', index, 'zone'], `must be one of ${names.join(', ')}`);
  }
  if (nodeLinks === undefined) return;
  for (const [index, zone] of zones.entries()) {
    for (const limit of ['upBytesPerS', 'downBytesPerS'] as const) {
      if (zone[limit] === undefined) continue;
      refuse(['cluster', 'zones', index, limit], 'must be left out where nodes have links of their own');
    }
  }
}

/** Refuses hosts that do not fit the rest. */
export function checkHosts({ hosts, nodeLinks, nodes }: ClusterScenario, refuse: Refuse): void {
  if (hosts !== undefined && nodeLinks !== undefined)
    refuse(['cluster', 'nodeLinks'], 'must be left out where hosts have links of their own');
  const disk = nodes.findIndex((group) => group.disk !== undefined);
  if (hosts === undefined && disk >= 0)
    refuse(['cluster', 'nodes', disk, 'disk'], 'must be left out where the cluster has no "hosts"');
}
