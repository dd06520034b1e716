import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import type { TaskContext } from '../../../src/worker/operator.ts';
import { exec } from '../../../src/operators/exec.ts';
import { runTask, seeded, sourceOf } from '../../support/operator-bench.ts';
import { putSource } from '../../support/worker-fixtures.ts';
import { WorkerOfTest } from '../../support/worker-stage.ts';

/** Runs a script of the shell over a line; answers what it said of its progress, what went to the log, and its output. */
async function run(script: string, onShare: (share: number, dir: string) => void = () => undefined) {
  const shares: number[] = [];
  const printed: string[] = [];
  const { text } = await runTask(
    exec,
    { command: ['sh', '-c', script] },
    [sourceOf(Buffer.from('a line\n'), seeded(1))],
    {
      printed,
      progress: (share, dir) => {
        shares.push(share);
        onShare(share, dir);
      },
    },
  );
  return { shares, printed, text: text.toString() };
}

describe('a program that says how far it is', () => {
  it('is heard while it computes what it has read', async () => {
    const script = `
      all=$(cat); echo 0.25 >&"$OUTRIDER_PROGRESS"
      until [ -e heard ]; do sleep 0.01; done
      echo 0.75 >&"$OUTRIDER_PROGRESS"; echo "$all"; echo 1 >&"$OUTRIDER_PROGRESS"`;
    const { shares, printed, text } = await run(script, (share, dir) => {
      if (share === 0.25) writeFileSync(join(dir, 'heard'), '');
    });
    expect(shares.slice(0, 2)).toEqual([0.25, 0.75]);
    expect([printed, text]).toEqual([[], 'a line\n']);
  });

  it('is told once of a line that is no share, and goes on', async () => {
    const others = ['half', '', '1.5', '-0.1', 'NaN', '0x1', '0.'.padEnd(60, '3')];
    const script = `
      exec 4>&"$OUTRIDER_PROGRESS"; cat; printf '%s\\n' ${others.map((line) => `'${line}'`).join(' ')} >&4
      echo ' 5e-1 ' >&4; until [ -e heard ]; do sleep 0.01; done`;
    const { shares, printed, text } = await run(script, (_, dir) => {
      writeFileSync(join(dir, 'heard'), '');
    });
    expect(shares).toEqual([0.5]);
    expect(printed).toEqual([
      'stderr: OUTRIDER_PROGRESS: "half" is no share from 0 to 1; such lines are passed over',
    ]);
    expect(text).toBe('a line\n');
  });

  it('may write without end of a line, and is never held up', async () => {
    const script = `head -c 5000000 /dev/zero >&3; printf '\\n0.5\\n' >&3; until [ -e heard ]; do sleep 0.01; done`;
    const { shares, printed } = await run(script, (_, dir) => {
      writeFileSync(join(dir, 'heard'), '');
    });
    expect(shares).toEqual([0.5]);
    expect(printed).toHaveLength(1);
  });

  it('need not, and may close it', async () => {
    expect(await run('exec 3>&-; cat')).toEqual({ shares: [], printed: [], text: 'a line\n' });
  });
});

it('what a program says is the progress of its attempt, until it has ended well', async () => {
  const worker = new WorkerOfTest();
  const segment = await putSource(
    worker.objects,
    { bucket: 'input', key: 'text' },
    Buffer.from('a line\n'.repeat(8)),
  );
  const stage = (script: string) => ({
    run: (context: TaskContext) =>
      exec.run({
        ...context,
        progress: (share) => {
          context.progress?.(share);
          writeFileSync(join(context.scratchDir, `heard-${String(share)}`), '');
        },
      }),
    options: { command: ['sh', '-c', script] },
    inputs: [
      {
        planned: { kind: 'source', format: 'text', header: true, onBadRecord: 'fail' } as const,
        segments: [segment],
      },
    ],
  });
  const said =
    'cat > all; echo 0.75 >&3; echo 0.25 >&3; until [ -e heard-0.25 ]; do sleep 0.01; done; cat all';
  expect(await worker.run(stage(`${said}; exit 1`), 0)).toBe('failed');
  const attempt = await worker.attempt(attemptIdOf('work', 0, 0));
  expect(attempt?.progress).toMatchObject({ bytesRead: 42, bytesTotal: 56 });
  expect(await worker.run(stage(said), 1)).toBe('done');
  expect((await worker.results())[0]?.progress).toMatchObject({ bytesRead: 56, bytesTotal: 56 });
});
