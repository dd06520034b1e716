import { defineConfig } from 'vitest/config';

/** Minutes each: campaigns, whole experiments, jobs that are killed, frozen, resumed, and sorts of a gigabyte. */
const long = [
  'test/big/**',
  'test/fuzz/**',
  'test/e2e/{causes,clone-faults,examples,first-job,clones,counted-costs,deaths,desk,explain,fargate-options,faults,inject,invocations,isolation,job-access,local,lost-outputs,many-objects,orphans,package,packs,resume,rows,slow-writes,zonal}.test.ts',
  'test/property/operators/{patterns,text-jobs}.test.ts',
  'test/property/{core/dolly,frozen-anywhere,hard-jobs,whole-jobs,worker/user-code}.test.ts',
  'test/sim/{cloned-jobs,closed-forms,dolly-experiments,experiments,experiments-on-traces,job-costs}.test.ts',
];

/** Half a minute each, and nothing that two at once could disturb: what every change need not wait for. */
const broad = [
  'test/contract/{hard-jobs,local-stack,local-stack-synthesize}.test.ts',
  'test/contract/ports/stores-in-dynamodb.test.ts',
  'test/property/replay.test.ts',
  'test/sim/{adversarial-stages,faults,job-cost,lambda-queue,short-tasks}.test.ts',
  'test/unit/app/{bursts,capacity-units,finish-once,names-as-keys,residents,scheduler-memory}.test.ts',
  'test/unit/cli/job-file.test.ts',
  'test/unit/worker/{reads-at-rate,user-code}.test.ts',
];

/** Whole jobs through the command: what has to work before anything else does. */
const essential = ['test/e2e/{reader,run,user-code}.test.ts'];

const common = {
  // Generous: a test waits for events, never for a time, and a busy machine is slow.
  testTimeout: 60_000,
  hookTimeout: 120_000,
};

export default defineConfig({
  test: {
    reporters: ['default'],
    projects: [
      {
        test: {
          ...common,
          name: 'short',
          include: ['test/**/*.test.ts'],
          exclude: [...long, ...broad, ...essential],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // One at a time: each starts processes of its own, which want the machine.
        test: {
          ...common,
          testTimeout: 180_000,
          name: 'essential',
          include: essential,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...common,
          name: 'broad',
          include: broad,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...common,
          testTimeout: 180_000,
          name: 'long',
          include: long.map((pattern) => (pattern.endsWith('.ts') ? pattern : `${pattern}/*.test.ts`)),
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
