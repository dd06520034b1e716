import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeFile } from 'node:fs/promises';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import type { ReplayReport } from '../../src/core/replay/replay-journal.ts';
import { readLogLine, renderLogEvent } from '../../src/report/log-lines.ts';
import { makeStyle } from '../../src/report/style.ts';
import { createRng } from '../../src/lib/rng.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem, makeLogs } from '../support/embedded-system.ts';
import { Workplace } from './command.ts';
import { runExplained } from './explained-run.ts';

const parameters = { [ParameterName.heartbeatMs]: '300', [ParameterName.tickMs]: '100' };
const reducers = 4;
const lines = 20_000;
const rng = createRng('placed tasks');
const text = Buffer.from(
  Array.from({ length: lines }, (_, line) => `${rng.next().toString(36)} ${String(line)}\n`).join(''),
);
const sorted = coreutils('sort', [], text);
const worker = { kind: 'fargate' } as const;

/** One task reads all, and leaves it to four. */
const jobOf = (input: string, policy: 'mantri' | 'outrider' | 'none'): JobSpecInput => ({
  name: 'placed',
  policy,
  storage: 'worker-local',
  stages: [
    {
      ...{ name: 'pass', operator: 'exec', worker, options: { command: ['cat'] } },
      inputs: [{ s3: [input], splitBytes: 2 * text.length }],
      partitions: reducers,
    },
    {
      ...{ name: 'again', operator: 'exec', worker, options: { command: ['cat'] } },
      inputs: [{ stage: 'pass', pattern: 'all-to-all' }],
    },
  ],
});

describe('the reduce tasks of a job on Fargate whose map task keeps its output', () => {
  let system: EmbeddedSystem;
  let input: string;

  beforeAll(async () => {
    system = await EmbeddedSystem.start({ slots: 8, parameters });
    input = await system.put('lines', text);
  }, 400_000);

  afterAll(() => system.stop());

  /** Runs the job, and tells the zones of its attempts and what its log says of placement. */
  async function runUnder(
    policy: 'mantri' | 'outrider' | 'none',
    storage: JobSpecInput['storage'] = 'worker-local',
  ) {
    const job = await system.ended(await system.submit({ ...jobOf(input, policy), storage }));
    expect(job.error).toBeUndefined();
    expect(coreutils('sort', [], await system.output(job)).equals(sorted)).toBe(true);
    const { attempts } = await system.outcomes(job.jobId);
    const zonesOf = (stage: string): string[] =>
      attempts.flatMap(({ attemptId, zone }) => (attemptId.startsWith(`${stage}/`) ? [zone ?? '?'] : []));
    const log = await makeLogs(system.stack).read(job.jobId, { since: job.createdAt, limit: 1_000 });
    const placed = log.map(readLogLine).filter(({ event }) => event === 'stage-placed');
    return { map: zonesOf('pass'), reduce: zonesOf('again'), placed };
  }

  it.each(['mantri', 'outrider'] as const)(
    'all run in its zone under %s, and the log says so',
    async (policy) => {
      const { map, reduce, placed } = await runUnder(policy);
      const [zone = ''] = map;
      expect(map).toHaveLength(1);
      expect(reduce).toEqual([zone, zone, zone, zone]);
      expect(placed).toMatchObject([
        {
          about: 'again',
          // Two zones: of all bytes, one for the length of each line among them, half would cross.
          facts: {
            zones: `4 ${zone}`,
            crossingBytes: 0,
            spreadBytes: (text.length + lines) / 2,
            slowestLinkBytes: 0,
          },
        },
      ]);
      const [line] = placed;
      expect(line && renderLogEvent(line, makeStyle({ isTty: false, env: {} }))).toContain(
        `again stage placed  zones 4 ${zone}`,
      );
    },
  );

  it('are spread over the zones under none', async () => {
    const { reduce, placed } = await runUnder('none');
    expect(new Set(reduce).size).toBe(2);
    expect(placed).toEqual([]);
  });

  it('are spread where intermediate data is in storage without zones, and nothing is said', async () => {
    const { reduce, placed } = await runUnder('mantri', 'standard');
    expect(new Set(reduce).size).toBe(2);
    expect(placed).toEqual([]);
  });
});

describe('outrider run of such a job', () => {
  it('explains where its tasks were sent, and decides alike in a replay', async () => {
    const at = await Workplace.make();
    await writeFile(at.path('lines'), text);
    const {
      exitCode,
      report,
      explanation,
      text: told,
    } = await runExplained({
      ...{ place: at, job: jobOf('lines', 'outrider') },
      options: ['--slots', '8'],
    });
    expect([exitCode, report.error]).toEqual([0, null]);
    expect(explanation.actions.filter(({ kind }) => kind === 'place')).toMatchObject([
      { of: 'again', facts: { crossingBytes: 0 } },
    ]);
    expect(told).toMatch(
      /again had its tasks sent to zones by where their input lies \(4 \S+\): 0 B between zones, /,
    );
    const again = await at.run('simulate', '--replay', report.jobId, '--json');
    expect(again.exitCode, again.err).toBe(0);
    const replayed = JSON.parse(again.out) as ReplayReport;
    expect([replayed.firstDifference, replayed.reproduced]).toEqual([undefined, replayed.ticks]);
  }, 180_000);
});
