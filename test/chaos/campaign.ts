import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeLogs } from '../support/embedded-system.ts';
import { synthesizeFor } from './assembly.ts';
import { auditStack } from './audit.ts';
import { apartBucket, ChaosSystem } from './chaos-system.ts';
import { Draw } from './draw.ts';
import { drawJob, type JobCase } from './job-case.ts';
import { processesOf } from './processes.ts';
import { type Outcome, runJob } from './run-job.ts';
import { problemsOf } from './verdict.ts';

export interface CampaignOptions {
  readonly jobs: number;
  readonly seed: string;
  /** Jobs that one stack serves at a time. */
  readonly inFlight: number;
  /** Jobs of one stack. */
  readonly batch: number;
  /** Numbers of the jobs to run; all where it is absent. */
  readonly only?: readonly number[];
  readonly limitMs: number;
  readonly print: (line: string) => void;
}

export interface CampaignResult {
  readonly passed: number;
  readonly failed: number;
  /** How often what was done. */
  readonly faults: ReadonlyMap<string, number>;
}

/** What is to be removed is removed within this time, or never. */
const patienceMs = 40_000;

function lineOf({ drawn, ran, mischief, tookMs }: Outcome, problems: readonly string[]): string {
  const { workload, terms, story, index, seed } = drawn;
  const states = ran.map(({ job, refused }) => job?.state ?? (refused === undefined ? 'lost' : 'refused'));
  const done = mischief.length === 0 ? '-' : mischief.join(', ');
  return [
    `${problems.length === 0 ? 'ok    ' : 'FAILED'} ${String(index).padStart(3)}`,
    `${workload.kind}, ${terms.kind}, ${terms.policy}, ${story.kind}`.padEnd(44),
    `${states.join('+')} in ${(tookMs / 1_000).toFixed(1)} s`,
    `[${done}]`,
    `seed ${seed}`,
  ].join('  ');
}

const reasonOf = (cause: unknown): string =>
  cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);

class Campaign {
  readonly #options: CampaignOptions;
  readonly #draw: Draw;
  readonly #assemblyDir: string;
  readonly faults = new Map<string, number>();
  passed = 0;
  failed = 0;

  constructor(options: CampaignOptions, assemblyDir: string) {
    this.#options = options;
    this.#assemblyDir = assemblyDir;
    this.#draw = new Draw(options.seed);
  }

  async run(): Promise<void> {
    const { jobs, batch, only } = this.#options;
    const indexes = only ?? Array.from({ length: jobs }, (_, index) => index);
    for (let at = 0; at < indexes.length; at += batch)
      await this.#runBatch(indexes.slice(at, at + batch), at);
  }

  #judge(problems: readonly string[], line: string): void {
    this.#options.print(line);
    for (const problem of problems) this.#options.print(`         ${problem}`);
    if (problems.length > 0) this.failed++;
    else this.passed++;
  }

  async #runBatch(indexes: readonly number[], number: number): Promise<void> {
    const chaos = await ChaosSystem.start(this.#draw.fork(`requests-${String(number)}`), this.#assemblyDir);
    const failedBefore = this.failed;
    const outcomes: Outcome[] = [];
    const waiting = [...indexes];
    try {
      const serve = async (): Promise<void> => {
        for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) {
          const outcome = await this.#runOne(chaos, drawJob(this.#draw, index));
          if (outcome !== undefined) outcomes.push(outcome);
        }
      };
      await Promise.all(Array.from({ length: this.#options.inFlight }, serve));
      await this.#auditBatch(chaos, outcomes);
    } catch (cause) {
      this.#judge([reasonOf(cause)], 'FAILED  the batch');
    } finally {
      const isKept = this.failed > failedBefore;
      await chaos.stop(isKept);
      for (const [name, count] of chaos.faults.counts)
        this.faults.set(name, (this.faults.get(name) ?? 0) + count);
      if (isKept) this.#options.print(`         data and logs: ${chaos.system.dir}`);
    }
    const left = processesOf(chaos.system.dir).map(
      ({ pid, command }) => `process ${pid} outlives its stack: ${command}`,
    );
    if (left.length > 0) this.#judge(left, 'FAILED  processes');
  }

  async #runOne(chaos: ChaosSystem, drawn: JobCase): Promise<Outcome | undefined> {
    try {
      const outcome = await runJob(chaos, drawn, this.#options.limitMs);
      const problems = await problemsOf(chaos, outcome);
      this.#judge(problems, lineOf(outcome, problems));
      if (problems.length > 0) await this.#keepEvidence(chaos, outcome, problems);
      return outcome;
    } catch (cause) {
      this.#judge([reasonOf(cause)], `FAILED ${drawn.index}  ${drawn.workload.kind}  seed ${drawn.seed}`);
      return undefined;
    }
  }

  /** What is left, held or harmed; then all outputs once more, since something may have thawed late. */
  async #auditBatch(chaos: ChaosSystem, outcomes: readonly Outcome[]): Promise<void> {
    const found = [...(await auditStack(chaos, patienceMs))];
    for (const outcome of outcomes) {
      const again = await problemsOf(chaos, outcome);
      found.push(...again.map((problem) => `in the end: ${problem}`));
    }
    this.#judge(found, `${found.length === 0 ? 'ok    ' : 'FAILED'}  what ${outcomes.length} jobs have left`);
    if (found.length > 0) for (const outcome of outcomes) await this.#keepEvidence(chaos, outcome, []);
  }

  /** Decision log, attempts and log lines of a case, beside the data of its stack. */
  async #keepEvidence(chaos: ChaosSystem, outcome: Outcome, problems: readonly string[]): Promise<void> {
    const { system } = chaos;
    await mkdir(join(system.dir, 'evidence'), { recursive: true });
    for (const { jobId, job } of outcome.ran) {
      if (jobId === undefined || job === undefined) continue;
      const page = { since: job.createdAt, limit: 2_000 };
      const { lines } = await makeLogs(system.stack).read(job.jobId, page);
      const evidence = {
        problems,
        mischief: outcome.mischief,
        drawn: { ...outcome.drawn, workload: outcome.drawn.workload.kind },
        job: await system.api.job(jobId),
        decisions: await system.decisions(jobId),
        outcomes: await system.outcomes(jobId),
        log: lines.map(({ text }) => text),
      };
      await writeFile(join(system.dir, 'evidence', `${jobId}.json`), JSON.stringify(evidence, null, 1));
    }
  }
}

/** Runs jobs while everything goes wrong that may, and holds each to the exact output and to leaving nothing. */
export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const assemblyDir = await synthesizeFor(apartBucket);
  try {
    const campaign = new Campaign(options, assemblyDir);
    await campaign.run();
    const { passed, failed, faults } = campaign;
    return { passed, failed, faults };
  } finally {
    await rm(assemblyDir, { recursive: true, force: true });
  }
}
