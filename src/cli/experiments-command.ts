import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import * as z from 'zod';
import {
  besideOthers,
  runExperiment,
  type Experiment,
  type ExperimentResult,
  type Plot,
} from '../experiments/experiment.ts';
import { experiments } from '../experiments/registry.ts';
import { loadTraces, missingTraces } from '../experiments/trace-library.ts';
import { renderExperiment } from '../report/experiment-report.ts';
import { drawPlot } from '../report/plots/draw-plot.ts';
import { oneLine } from '../report/format.ts';
import { resultsMarkdown, type ShownResult } from '../report/results-markdown.ts';
import { renderTable } from '../report/table.ts';
import { writeJson, writeLines, type Console } from './console.ts';
import { badInput, systemReason } from './failures.ts';
import { parseWhole } from './quantities.ts';

const examples = `
Examples:
  $ outrider experiments                               the names of all
  $ outrider experiments late-sleep
  $ outrider experiments late-sleep --seeds 5 --plot plots
  $ outrider experiments all --json > results.json
  $ outrider experiments all --seeds 10 --again 1 --markdown

An experiment repeats a measurement of a paper in the simulator, and says by a rule of its own whether it is
reproduced, has the same shape, or differs. Same seed, same bytes. With "all", those whose traces are not there
are skipped; alone, that is an error.

Exit codes: 0 done, whatever the verdicts, 1 failed, 2 bad usage or input.`;

const optionsSchema = z.object({
  seed: z.string().default('1'),
  seeds: z.string().optional(),
  again: z.string().default('0'),
  data: z.string().optional(),
  plot: z.string().optional(),
  markdown: z.union([z.string(), z.literal(true)]).optional(),
  json: z.boolean().default(false),
});

const mostSeeds = 1_000;
const mostAgain = 100;
const largestSeed = 1_000_000_000;
/** Beside the checkout. */
const dataFolder = new URL('../../../shared/data', import.meta.url);

interface Settings {
  readonly seed: number;
  readonly seeds: number | undefined;
  /** Further runs of the whole, with the seeds that follow. */
  readonly again: number;
  readonly data: string;
  readonly plotDir: string | undefined;
  /** Where the results are written as Markdown, if anywhere. */
  readonly markdown: string | undefined;
  readonly json: boolean;
}

/** `outrider experiments`: repeats the papers' measurements. */
export function addExperimentsCommand(program: Command, console: Console): void {
  program
    .command('experiments')
    .description("repeat the papers' experiments in the simulator")
    .argument('[name]', '"list", "all" or the name of one', 'list')
    .option('--seed <n>', 'seed that all others derive from', '1')
    .option('--seeds <n>', 'runs of each setting; more give narrower intervals')
    .option('--again <n>', 'as many further runs with the next seeds; the worst verdict counts', '0')
    .option('--data <dir>', 'folder of the traces (default: ../shared/data beside the checkout)')
    .option('--plot <dir>', 'also write plots there, as SVG')
    .option('--markdown [file]', 'also write the results as one page of Markdown (default: RESULTS.md)')
    .option('--json', 'print one JSON document, and nothing else, on standard output')
    .addHelpText('after', examples)
    .action(async (name: string, _options: unknown, self: Command) => {
      const options = optionsSchema.parse(self.opts());
      const settings: Settings = {
        seed: parseWhole('--seed', options.seed, 0, largestSeed),
        seeds: options.seeds === undefined ? undefined : parseWhole('--seeds', options.seeds, 1, mostSeeds),
        again: parseWhole('--again', options.again, 0, mostAgain),
        data: options.data === undefined ? fileURLToPath(dataFolder) : resolve(console.cwd, options.data),
        plotDir: options.plot === undefined ? undefined : resolve(console.cwd, options.plot),
        markdown:
          options.markdown === undefined
            ? undefined
            : resolve(console.cwd, options.markdown === true ? 'RESULTS.md' : options.markdown),
        json: options.json,
      };
      if (name === 'list') listExperiments(settings, console);
      else if (name === 'all') await runAll(settings, console);
      else await runOne(name, settings, console);
    });
}

function listExperiments({ json }: Settings, console: Console): void {
  if (json) {
    const listed = experiments.map(({ name, title, source, defaultSeeds, traces }) => ({
      name,
      title,
      source,
      defaultSeeds,
      traces,
    }));
    writeJson(console, { experiments: listed });
    return;
  }
  const columns = ['name', 'what', 'source'].map((heading) => ({ heading, align: 'left' as const }));
  const rows = experiments.map(({ name, title, source }) => [name, title, source]);
  writeLines(console.out, renderTable(columns, rows, console.outStyle.heading));
}

async function runOne(name: string, settings: Settings, console: Console): Promise<void> {
  const experiment = experiments.find((each) => each.name === name);
  if (experiment === undefined) {
    throw badInput(
      `no such experiment: ${oneLine(name)}; there are ${experiments.map((each) => each.name).join(', ')}`,
    );
  }
  const missing = await missingTraces(settings.data, experiment.traces);
  if (missing.length > 0)
    throw badInput(
      `${name} needs the traces ${missing.join(', ')}, which are not in ${settings.data}; see --data`,
    );
  const result = await perform(experiment, settings, console);
  await writeMarkdown(settings, [{ experiment, result }], console);
  if (settings.json) writeJson(console, result);
}

async function runAll(settings: Settings, console: Console): Promise<void> {
  const shown: ShownResult[] = [];
  const skipped: { name: string; missing: readonly string[] }[] = [];
  for (const experiment of experiments) {
    const missing = await missingTraces(settings.data, experiment.traces);
    if (missing.length > 0) {
      skipped.push({ name: experiment.name, missing });
      console.err(`${experiment.name} is skipped: no traces ${missing.join(', ')} in ${settings.data}\n`);
      continue;
    }
    shown.push({ experiment, result: await perform(experiment, settings, console) });
  }
  const results = shown.map(({ result }) => result);
  await writeMarkdown(settings, shown, console);
  if (settings.json) {
    writeJson(console, { experiments: results, skipped });
    return;
  }
  const columns = ['experiment', 'verdict', 'checks'].map((heading) => ({ heading, align: 'left' as const }));
  const rows = results.map(({ name, verdict, checks }) => [
    name,
    verdict,
    `${checks.filter(({ ok }) => ok).length} of ${checks.length}`,
  ]);
  writeLines(console.out, renderTable(columns, rows, console.outStyle.heading));
}

/** Runs one and, unless its JSON is wanted, shows it. */
async function perform(
  experiment: Experiment,
  settings: Settings,
  console: Console,
): Promise<ExperimentResult> {
  const traces = await loadTraces(settings.data, experiment.traces);
  const count = settings.seeds ?? experiment.defaultSeeds;
  const run = (seed: number) => runExperiment(experiment, { seed, count, traces });
  const { result: first, plots } = await run(settings.seed);
  const others: ExperimentResult[] = [];
  // Where nothing is random, another seed is the same run.
  const again = experiment.defaultSeeds === 1 ? 0 : settings.again;
  for (let next = 1; next <= again; next++) others.push((await run(settings.seed + next)).result);
  const result = again === 0 ? first : besideOthers(first, others);
  if (settings.plotDir !== undefined) await writePlots(settings.plotDir, experiment, plots, console);
  if (!settings.json)
    writeLines(console.out, [...renderExperiment(experiment, result, console.outStyle), '']);
  return result;
}

async function writeMarkdown(
  { markdown }: Settings,
  shown: readonly ShownResult[],
  console: Console,
): Promise<void> {
  if (markdown === undefined) return;
  try {
    const names = new Set(shown.map(({ experiment }) => experiment.name));
    const others = experiments.flatMap(({ name }) => (names.has(name) ? [] : [name]));
    await writeFile(markdown, resultsMarkdown(shown, others));
  } catch (error) {
    throw badInput(`cannot write ${markdown}: ${systemReason(error)}`, error);
  }
  console.err(`wrote ${markdown}\n`);
}

async function writePlots(
  dir: string,
  { name }: Experiment,
  plots: readonly Plot[],
  console: Console,
): Promise<void> {
  for (const plot of plots) {
    const path = join(dir, `${name}-${plot.name}.svg`);
    try {
      await mkdir(dir, { recursive: true });
      await writeFile(path, drawPlot(plot));
    } catch (error) {
      throw badInput(`cannot write plots to ${dir}: ${systemReason(error)}`, error);
    }
    console.err(`wrote ${path}\n`);
  }
}
