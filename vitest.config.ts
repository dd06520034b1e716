import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Minutes each: jobs that are killed, frozen, resumed, and sorts of a gigabyte. */
const long = [
  'test/big/**',
  'test/e2e/{budget,deaths,desk,examples,fargate-options,faults,first-job,hung-workers,inject,isolation,job-access,kept-outputs,local,lost-outputs,many-objects,orphans,package,packs,reread-parts,resume,rows,skew,taken-up,zonal,zonal-fargate}.test.ts',
  'test/property/worker/user-code.test.ts',
];

/** Those that ask which attempt is slow, and which of two comes first: one at a time. */
const judging = [
  'test/e2e/{causes,clone-faults,clones,counted-costs,explain,invocations,out-of-time,outlasts-lambda,packed-inputs,pauses,placed-tasks,slow-nodes,slow-writes,small-phases,waits}.test.ts',
];

/** Minutes each, too, but in one process: two at a time. */
const campaigns = [
  'test/fuzz/**',
  'test/property/operators/{patterns,text-jobs}.test.ts',
  'test/property/worker/taken-up-jobs.test.ts',
  'test/property/{core/dolly,frozen-anywhere,hard-jobs,whole-jobs}.test.ts',
  'test/sim/{cloned-jobs,closed-forms,dolly-experiments,dolly-facebook,experiments,experiments-on-traces,job-costs}.test.ts',
];

/** Seconds to a minute each, and nothing that two at once could disturb: what every change need not wait for. */
const broad = [
  'test/cdk/app.test.ts',
  'test/contract/{ended-stack,hard-jobs,local-ecs-orphans,local-lambda-destinations,local-lambda-failures,local-lambda-idle,local-lambda-orphans,local-s3-buffers,local-s3-handed,local-sfn-execution,local-sfn-tokens,local-stack,local-stack-start,local-stack-stop,local-stack-synthesize,local-stack-template-errors}.test.ts',
  'test/contract/ports/{job-units,lost-answers,objects-in-s3,spoilt-places,stores-in-dynamodb,unreadable-records}.test.ts',
  'test/e2e/{copied-outputs,deadlines,plan,programs,slow-reads}.test.ts',
  'test/property/{capacity-freezes,clone-preemption,copied-outputs,handed-over-anywhere,harmed-anywhere,replay,split-typescript-joins}.test.ts',
  'test/sim/{adversarial-stages,copies,copies-beside-fargate,default-on-lambda,determinism,dolly,faults,found-stages,hard-stages,jockey-control,job-cost,lambda-queue,mixed-features,room-that-falls,short-tasks,silent-copies,worker-reports}.test.ts',
  'test/unit/app/{bursts,capacity-units,errors-by-kind,finish-once,hard-writes,names-as-keys,packs,residents,scheduler-memory}.test.ts',
  'test/unit/cli/{checkout-job-file,job-file,kept-checks}.test.ts',
  'test/unit/operators/{ere,exec-group,groupby-engine}.test.ts',
  'test/unit/traces/public-traces.test.ts',
  'test/unit/worker/{attempt-units,job-bundles,many-objects,reads-at-rate,sampled-blocks,user-code}.test.ts',
];

/** Without servers and clocks, without processes that outlive a test, and with nothing that one file could leave to the next: they share what they load. */
const pure = [
  'test/functions/{api-bodies,api-fields,api-pages,api-routes,caught-error,ended-batch,learning,own-stops,settings,task-memory,worker-ended}.test.ts',
  'test/property/core/**/*.test.ts',
  'test/sim/**/*.test.ts',
  'test/unit/{app,contracts,core,dataflow,experiments,lib,report,traces}/**/*.test.ts',
];

/**
 * Operators and workers, whose processes and servers end with their tests: they share what they load, too. Not so those named here, which
 * stand in for a global, look at processes, or weigh the memory of their own; nor adapters, some of whose tests fail where they share.
 */
const units = [
  'test/property/operators/**',
  'test/unit/local/!(event-bus|live-process|private-files|process-lock|scratch-space).test.ts',
  'test/unit/local/iam/**',
  'test/unit/operators/!(full-disk).test.ts',
  'test/unit/worker/!(hash-combiner|kept-memory).test.ts',
];

/** Whole jobs through the command: what has to work before anything else does. */
const essential = ['test/e2e/{reader,run,user-code}.test.ts'];

/** A folder's tests, where a pattern names no files. */
const filesOf = (patterns: readonly string[]): string[] =>
  patterns.map((pattern) => (pattern.endsWith('.ts') ? pattern : `${pattern}/*.test.ts`));

/** Those that take longest, longest first. */
const longest = [
  'dolly-facebook',
  'dolly-experiments',
  'experiments-on-traces',
  'experiments',
  'job-costs',
  'split-typescript-joins',
  'harmed-anywhere',
].map((name) => `/${name}.test.ts`);

/** Begins with the longest, so that nobody waits at the end for one of them; the others by what earlier runs tell. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const first = longest.flatMap((name) => sorted.filter(({ moduleId }) => moduleId.endsWith(name)));
    return [...first, ...sorted.filter((file) => !first.includes(file))];
  }
}

/** Files that run together, so many at a time, once those of the places before have ended. */
function project(
  name: string,
  include: readonly string[],
  { workers, place, ...others }: TestProjectInlineConfiguration['test'] & { workers: number; place: number },
): TestProjectInlineConfiguration {
  return {
    extends: true,
    test: {
      name,
      include: filesOf(include),
      // Generous: a test waits for events, never for a time, and a busy machine is slow.
      testTimeout: 60_000,
      hookTimeout: 120_000,
      maxWorkers: workers,
      sequence: { groupOrder: place },
      ...others,
    },
  };
}

/** What `npm test` leaves out. */
const unhurried = filesOf([...long, ...judging, ...campaigns, ...broad]);
const elsewhere = [...unhurried, ...filesOf([...pure, ...units, ...essential])];
/** Of whole jobs and campaigns. */
const testTimeout = 300_000;

export default defineConfig(({ mode }) => ({
  test: {
    reporters: ['default'],
    sequence: { sequencer: LongestFirst },
    // `npm test` runs in this mode, and makes a tenth of the random draws of `npm run test:all`.
    env: mode === 'quick' ? { OUTRIDER_TEST_DRAWS: '0.1' } : {},
    projects: [
      // More than the two cores that they are timed on: many wait for a process or a pause of a client.
      project('short', ['test/**'], { exclude: elsewhere, workers: 3, place: 0 }),
      project('pure', pure, { exclude: unhurried, isolate: false, workers: 3, place: 0 }),
      project('units', units, { exclude: unhurried, isolate: false, workers: 3, place: 0 }),
      // After the others: each starts processes of its own, which want the machine.
      project('essential', essential, { testTimeout, workers: 2, place: 1 }),
      project('broad', broad, { workers: 2, place: 2 }),
      project('campaigns', campaigns, {
        testTimeout,
        workers: 2,
        place: 3,
        // Simulations make gigabytes of what lives for a tick.
        execArgv: ['--max-semi-space-size=64'],
      }),
      // A second try, which the report tells of: whole jobs on real processes, whose races a busy machine may decide otherwise.
      project('long', long, { testTimeout, workers: 2, place: 4, retry: 1 }),
      project('judging', judging, { testTimeout, workers: 1, place: 5, retry: 1 }),
    ],
  },
}));
