import type { Command } from 'commander';
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import * as z from 'zod';
import { renderAttempts } from '../report/attempt-table.ts';
import { renderJob } from '../report/job-table.ts';
import { drawPlot } from '../report/plots/draw-plot.ts';
import { timelinePlot } from '../report/timeline.ts';
import { epochMs } from '../contracts/units.ts';
import { writeJson, writeLines, type Console } from './console.ts';
import { badInput, systemReason } from './failures.ts';
import { givenJob } from './given-job.ts';
import { findJobSource, placeOfOutput } from './job-source.ts';
import { addTargetOptions, targetOptions } from './target-options.ts';

const optionsSchema = z.object({
  ...targetOptions,
  json: z.boolean().default(false),
  plot: z.string().optional(),
});

const examples = `
Examples:
  $ outrider report wordcount-0123456789ab
  $ outrider report wordcount-0123456789ab --plot slots.svg    slots over time: attempts, what was asked for, the oracle`;

/** `report`: what a job was, what it asked for on its way, and a picture of its slots over time. */
export function addReportCommand(program: Command, console: Console): void {
  addTargetOptions(
    program
      .command('report')
      .description('tell all of a job: stages, cost, attempts, and its slots over time'),
  )
    .argument('<job>', 'id of the job')
    .option('--plot <file.svg>', 'draw its slots over time: attempts that ran, what it asked for, the oracle')
    .option('--json', 'print one JSON document, and nothing else, on standard output')
    .addHelpText('after', examples)
    .action(async (jobText: string, _options: unknown, self: Command) => {
      const options = optionsSchema.parse(self.opts());
      const source = await findJobSource(givenJob(jobText), options, console);
      const [job, { attempts }, { allocations }] = await Promise.all([
        source.job(),
        source.attempts(),
        source.allocations(),
      ]);
      const now = source.seenUntil ?? epochMs(Date.now());
      const timeline = timelinePlot(job, attempts, { allocations, now });
      if (options.plot !== undefined)
        await writePlot(resolve(console.cwd, options.plot), drawPlot(timeline), console);
      if (options.json) {
        const { outputDir } = source;
        writeJson(console, {
          job,
          ...(outputDir === undefined ? {} : { outputDir }),
          attempts,
          allocations,
          timeline,
        });
        return;
      }
      writeLines(console.out, [
        ...renderJob(job, placeOfOutput(job, source), console.outStyle),
        '',
        ...(attempts.length === 0 ? ['no attempts'] : renderAttempts(attempts, now, console.outStyle)),
      ]);
    });
}

async function writePlot(path: string, picture: string, console: Console): Promise<void> {
  try {
    await writeFile(path, picture);
  } catch (error) {
    throw badInput(`cannot write ${path}: ${systemReason(error)}`, error);
  }
  console.err(`wrote ${path}\n`);
}
