import { describe, expect, it } from 'vitest';
import { type JobForecast, type JobRecord, noAttempts } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { deadlineMet, renderJob, renderJobs } from '../../../src/report/job-table.ts';
import { renderBar, renderBars, renderChanges } from '../../../src/report/progress-bars.ts';
import { runReport } from '../../../src/report/run-report.ts';
import { makeStyle } from '../../../src/report/style.ts';
import { renderTable } from '../../../src/report/table.ts';
import { jobRecord, stageSummary } from './report-records.ts';

const plain = makeStyle({ isTty: false, env: {} });

describe('table', () => {
  it('makes columns as wide as their widest cell and leaves no space at the ends of lines', () => {
    const columns = [
      { heading: 'WORD', align: 'left' },
      { heading: 'N', align: 'right' },
      { heading: 'NOTE', align: 'left' },
    ] as const;
    expect(
      renderTable(columns, [
        ['the', '1,000', ''],
        ['nation', '7', 'x'],
      ]),
    ).toEqual(['WORD        N  NOTE', 'the     1,000', 'nation      7  x']);
  });
});

describe('table on a narrow terminal', () => {
  it('folds each row into lines that fit, and long texts between words', () => {
    const columns = [
      { heading: 'NAME', align: 'left' },
      { heading: 'TIME', align: 'right' },
      { heading: 'WHY', align: 'left' },
    ] as const;
    const rows = [
      ['map/0', '1.0s', 'its worker had no more memory left'],
      ['map/1', '12.0s', ''],
    ];
    expect(renderTable(columns, rows, undefined, 24)).toEqual([
      'NAME    TIME',
      '    WHY',
      'map/0   1.0s',
      '    its worker had no',
      '    more memory left',
      'map/1  12.0s',
    ]);
    for (const most of [10, 16, 17, 30, 51])
      for (const line of renderTable(columns, rows, undefined, most))
        expect(line.length).toBeLessThanOrEqual(most);
    expect(renderTable(columns, rows, undefined, 49)).toEqual(renderTable(columns, rows));
  });
});

describe('style', () => {
  it('colours a terminal only, and not where NO_COLOR is set', () => {
    const coloured = '\u001b[32mok\u001b[39m';
    expect(makeStyle({ isTty: true, env: {} }).good('ok')).toBe(coloured);
    expect(makeStyle({ isTty: true, env: { NO_COLOR: '1' } }).good('ok')).toBe('ok');
    expect(makeStyle({ isTty: true, env: { NO_COLOR: '' } }).good('ok')).toBe(coloured);
    expect(makeStyle({ isTty: true, env: { TERM: 'dumb' } }).good('ok')).toBe('ok');
    expect(plain.good('ok')).toBe('ok');
  });
});

describe('progress bars', () => {
  it('draws a bar per stage and a line for the job', () => {
    const job = jobRecord({
      state: 'running',
      stages: [
        stageSummary({ name: 'tokenize', done: 4, progress: 1 }),
        stageSummary({ name: 'count', tasks: 2, done: 1, running: 1, progress: 0.5 }),
      ],
    });
    expect(renderBars(job, 1_002_500, 60, plain)).toEqual([
      `tokenize [${'#'.repeat(20)}] 100% 4/4 tasks`,
      `count    [${'#'.repeat(10)}${'.'.repeat(10)}]  50% 1/2 tasks, 1 running`,
      'running 2.5s',
    ]);
  });

  it('is never full before the last task is done, and never wider than the terminal', () => {
    const job = jobRecord({
      stages: [stageSummary({ name: 'a-very-long-name-of-a-stage', done: 3, running: 1, progress: 1 })],
    });
    const [bar = ''] = renderBars(job, 0, 200, plain);
    expect(bar).toContain(' 99% 3/4 tasks, 1 running');
    for (const line of renderBars(job, 0, 30, plain)) expect(line.length).toBeLessThan(30);
  });

  it('cuts estimates outside of 0 to 1', () => {
    expect([renderBar(-1, 4), renderBar(0.5, 4), renderBar(7, 4)]).toEqual(['[....]', '[##..]', '[####]']);
  });

  it('says in plain lines only what has changed', () => {
    const first = jobRecord({ state: 'running', stages: [stageSummary()] });
    const second = jobRecord({
      state: 'running',
      stages: [stageSummary({ done: 1, running: 3, progress: 0.4 })],
    });
    const third = jobRecord({
      state: 'running',
      stages: [stageSummary({ done: 1, running: 3, progress: 0.6 })],
    });
    expect(renderChanges(undefined, first)).toEqual(['job running']);
    expect(renderChanges(first, second)).toEqual(['tokenize: 1/4 tasks, 3 running']);
    expect(renderChanges(second, third)).toEqual([]);
  });
});

describe('job report', () => {
  it('says what a job might cost, and where it has cost more', () => {
    const { spec } = jobRecord();
    const budgetLine = (budget: number): string | undefined =>
      renderJob(jobRecord({ spec: { ...spec, budget }, dollars: 0.02 }), undefined, plain).find((line) =>
        line.startsWith('budget'),
      );
    expect(budgetLine(0.05)).toBe('budget    $0.0500');
    expect(budgetLine(0.01)).toBe('budget    $0.0100 exceeded');
  });

  const ended = jobRecord({
    state: 'succeeded',
    endedAt: epochMs(1_012_300),
    deadlineAt: epochMs(1_060_000),
    stages: [
      stageSummary({
        done: 4,
        bytesIn: 10_761_413,
        bytesOut: 2_048,
        recordsIn: 60_000,
        recordsOut: 1_234,
        startedAt: epochMs(1_000_500),
        endedAt: epochMs(1_004_600),
      }),
    ],
    attempts: { ...noAttempts, launched: 5, lost: 1 },
    counters: { skippedRecords: 3, other: 0 },
    workerMs: 15_000,
    dollars: 0.000123,
  });

  it('shows stages, attempts, cost, counters, deadline and output', () => {
    expect(renderJob(ended, 'out', plain)).toEqual([
      'wordcount-0123456789ab succeeded in 12.3s',
      '',
      'STAGE     OPERATOR  TASKS  TIME  BYTES IN  BYTES OUT  RECORDS IN  RECORDS OUT',
      'tokenize  tokenize      4  4.1s  10.3 MiB    2.0 KiB      60,000        1,234',
      '',
      'attempts  5 launched, 1 lost',
      'cost      $0.000123 estimated, 15.0s of workers',
      'counters  skippedRecords 3',
      'deadline  1970-01-01 00:17:40Z met',
      'output    out',
    ]);
  });

  it('shows names of counters on one line and without what moves a cursor', () => {
    const counters = { '\u001b[2Jgood': 1, 'a\nstate succeeded': 2, '\u009b': 3 };
    expect(renderJob(jobRecord({ counters }), undefined, plain)).toContain(
      'counters  [2Jgood 1, a state succeeded 2,  3',
    );
  });

  it('shows what was counted, by what it cost, and that it is a lower bound where counts were lost', () => {
    const requests = {
      dynamodb: { writeUnits: 1_234.5, readUnits: 7.5, calls: 2_000 },
      s3: { put: 2, get: 30, list: 1, other: 4 },
      lambda: 1,
      states: 6,
      api: 1,
      logBytes: 9,
      coordinatorGbSeconds: 1.5,
      uncounted: 0,
    };
    const costs = { compute: 0.0001, records: 0.00002, storage: 0.000003, coordination: 0 };
    const counted = (uncounted: number) =>
      renderJob({ ...ended, requests: { ...requests, uncounted }, costs }, undefined, plain).slice(6, 8);
    expect(counted(0)).toEqual([
      'cost      $0.000123 estimated, 15.0s of workers (compute $0.000100, records $0.000020, storage $0.000003, coordination $0)',
      'requests  DynamoDB 1,234 write and 8 read units; S3 2 PUT, 30 GET, 1 LIST; 1 invocation; 6 transitions',
    ]);
    expect(counted(2)[1]).toMatch(/; 6 transitions; at least, since 2 attempts died untold$/);
  });

  it('shows the error of a failed job on one line', () => {
    const failed = jobRecord({
      state: 'failed',
      error: { name: 'JobFailed', message: 'tokenize/3:\nout of memory' },
    });
    expect(renderJob(failed, undefined, plain).at(-1)).toBe('error     tokenize/3: out of memory');
  });

  it('lists jobs one a line', () => {
    const goesOn = { ...ended, state: 'running' as const };
    delete goesOn.endedAt;
    expect(renderJobs([ended, goesOn], epochMs(1_090_000), plain).slice(1)).toEqual([
      'wordcount-0123456789ab  succeeded  1970-01-01 00:16:40Z  12.3s    4/4  $0.000123',
      'wordcount-0123456789ab  running    1970-01-01 00:16:40Z  1m30s    4/4  $0.000123',
    ]);
  });

  it('counts a deadline as missed when the job failed or ended late, and as open while it runs', () => {
    expect(deadlineMet(ended)).toBe(true);
    expect(deadlineMet({ ...ended, endedAt: epochMs(1_060_001) })).toBe(false);
    expect(deadlineMet({ ...ended, state: 'failed' })).toBe(false);
    const told = (job: JobRecord): string | undefined =>
      renderJob(job, undefined, plain).find((line) => line.startsWith('deadline'));
    expect(told(ended)).toBe('deadline  1970-01-01 00:17:40Z met');
    expect(told({ ...ended, endedAt: epochMs(1_060_001) })).toBe('deadline  1970-01-01 00:17:40Z missed');
    expect(told({ ...ended, state: 'failed' })).toBe(
      'deadline  1970-01-01 00:17:40Z not met: the job failed before it',
    );
    expect(deadlineMet(jobRecord({ deadlineAt: epochMs(1) }))).toBeUndefined();
    expect(deadlineMet(jobRecord({ endedAt: epochMs(1) }))).toBeUndefined();
  });

  it('tells of a running job when it is expected to end, how likely in time, and what that rests on', () => {
    const line = (forecast: Partial<JobForecast>, changes: Partial<JobRecord> = {}): string | undefined =>
      renderJob(
        jobRecord({
          state: 'running',
          deadlineAt: epochMs(1_060_000),
          forecast: { at: epochMs(1_010_000), basis: 'profile', runs: 3, ...forecast },
          ...changes,
        }),
        undefined,
        plain,
      ).find((each) => each.startsWith('forecast'));
    const end = { expectedEndAt: epochMs(1_050_000) };
    expect(line({ ...end, probability: 0.971, slotsWanted: 5 })).toBe(
      'forecast  ends 1970-01-01 00:17:30Z, P(deadline) 97%, wants 5 slots, by 3 earlier runs of the job',
    );
    expect(line({ basis: 'nothing', runs: 0 })).toBe('forecast  nothing is known of the job yet');
    expect(line({ ...end, basis: 'similar', runs: 1 })).toBe(
      'forecast  ends 1970-01-01 00:17:30Z, by 1 earlier run of jobs like it',
    );
    expect(line({ ...end, basis: 'first-wave', runs: 0, probability: 0.999 })).toBe(
      'forecast  ends 1970-01-01 00:17:30Z, P(deadline) >99%, by its own first tasks',
    );
    expect(line({ probability: 0.001 })).toContain('P(deadline) <1%');
    expect(line({ probability: 0 })).toContain('P(deadline) 0%');
    expect(line({ probability: 1 })).toContain('P(deadline) 100%');
    expect(line(end, { state: 'succeeded' })).toBeUndefined();
    // Of a deadline that was taken away since the scheduler looked nobody wants to know how likely it is met.
    expect(
      renderJob(
        jobRecord({
          state: 'running',
          forecast: { at: epochMs(1), basis: 'profile', runs: 1, ...end, probability: 1 },
        }),
        undefined,
        plain,
      ).at(-1),
    ).toBe('forecast  ends 1970-01-01 00:17:30Z, by 1 earlier run of the job');
  });

  it('lists what jobs that go on are expected to come to, where anything is known', () => {
    const running = jobRecord({
      state: 'running',
      deadlineAt: epochMs(1_060_000),
      forecast: {
        at: epochMs(1_010_000),
        basis: 'profile',
        runs: 3,
        expectedEndAt: epochMs(1_050_000),
        probability: 0.9,
      },
    });
    expect(renderJobs([running, ended], epochMs(1_010_000), plain)).toEqual([
      'JOB                     STATE      CREATED                TIME  TASKS       COST  EXPECTED END          P(DEADLINE)',
      'wordcount-0123456789ab  running    1970-01-01 00:16:40Z  10.0s    0/0         $0  1970-01-01 00:17:30Z          90%',
      'wordcount-0123456789ab  succeeded  1970-01-01 00:16:40Z  12.3s    4/4  $0.000123  -                               -',
    ]);
  });

  it('follows a forecast: on the line of the job, and by a line where it has become another', () => {
    const at = (probability: number, changes: Partial<JobRecord> = {}): JobRecord =>
      jobRecord({
        state: 'running',
        deadlineAt: epochMs(1_060_000),
        forecast: {
          at: epochMs(1_010_000),
          basis: 'profile',
          runs: 3,
          expectedEndAt: epochMs(1_050_000),
          probability,
        },
        ...changes,
      });
    const text = (percent: number): string =>
      `ends 1970-01-01 00:17:30Z, P(deadline) ${percent}%, by 3 earlier runs of the job`;
    expect(renderBars(at(0.9), 1_010_000, 120, plain)).toEqual([`running 10.0s, ${text(90)}`]);
    expect(renderChanges(undefined, at(0.9))).toEqual(['job running', `forecast: ${text(90)}`]);
    expect(renderChanges(at(0.9), at(0.92))).toEqual([]);
    expect(renderChanges(at(0.9), at(0.4))).toEqual([`forecast: ${text(40)}`]);
    expect(renderChanges(at(0.9), at(0.9, { deadlineAt: epochMs(1_090_000) }))).toEqual([
      `forecast: ${text(90)}`,
    ]);
    expect(renderChanges(at(0.9), at(0.9, { state: 'succeeded' }))).toEqual(['job succeeded']);
  });

  it('gives scripts the names that they rely on', () => {
    expect(runReport(ended, ['/out/part-00000'])).toEqual({
      jobId: 'wordcount-0123456789ab',
      state: 'succeeded',
      policy: 'outrider',
      wallMs: 12_300,
      stages: ended.stages,
      output: ['/out/part-00000'],
      attempts: { ...noAttempts, launched: 5, lost: 1 },
      workerSeconds: 15,
      dollars: 0.000123,
      requests: {
        dynamodb: { writeUnits: 0, readUnits: 0, calls: 0 },
        s3: { put: 0, get: 0, list: 0, other: 0 },
        lambda: 0,
        states: 0,
        api: 0,
        logBytes: 0,
        coordinatorGbSeconds: 0,
        uncounted: 0,
      },
      costs: { compute: 0.000123, records: 0, storage: 0, coordination: 0 },
      deadline: { at: '1970-01-01T00:17:40.000Z', met: true },
      budget: null,
      counters: { skippedRecords: 3, other: 0 },
      error: null,
      injected: null,
    });
    expect(runReport(jobRecord(), []).deadline).toBeNull();
  });
});
