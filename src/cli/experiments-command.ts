import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { z } from 'zod';
import {
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

An experiment repeats a measurement of a paper in the simulator, and says by a rule of its own whether it is
reproduced, has the same shape, or differs. Same seed, same bytes. With "all", those whose traces are not there
are skipped; alone, that is an error.

Exit codes: 0 done, whatever the verdicts, 1 failed, 2 bad usage or input.`;

const optionsSchema = z.object({
  seed: z.string().default('1'),
  seeds: z.string().optional(),
  data: z.string().optional(),
  plot: z.string().optional(),
  json: z.boolean().default(false),
});

const mostSeeds = 1_000;
const largestSeed = 1_000_000_000;
/** Beside the checkout. */
const dataFolder = new URL('../../../shared/data', import.meta.url);

interface Settings {
  readonly seed: number;
  readonly seeds: number | undefined;
  readonly data: string;
  readonly plotDir: string | undefined;
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
    .option('--data <dir>', 'folder of the traces (default: ../shared/data beside the checkout)')
    .option('--plot <dir>', 'also write plots there, as SVG')
    .option('--json', 'print one JSON document, and nothing else, on standard output')
    .addHelpText('after', examples)
    .action(async (name: string, _options: unknown, self: Command) => {
      const options = optionsSchema.parse(self.opts());
      const settings: Settings = {
        seed: parseWhole('--seed', options.seed, 0, largestSeed),
        seeds: options.seeds === undefined ? undefined : parseWhole('--seeds', options.seeds, 1, mostSeeds),
        data: options.data === undefined ? fileURLToPath(dataFolder) : resolve(console.cwd, options.data),
        plotDir: options.plot === undefined ? undefined : resolve(console.cwd, options.plot),
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
  if (settings.json) writeJson(console, result);
}

async function runAll(settings: Settings, console: Console): Promise<void> {
  const results: ExperimentResult[] = [];
  const skipped: { name: string; missing: readonly string[] }[] = [];
  for (const experiment of experiments) {
    const missing = await missingTraces(settings.data, experiment.traces);
    if (missing.length > 0) {
      skipped.push({ name: experiment.name, missing });
      console.err(`${experiment.name} is skipped: no traces ${missing.join(', ')} in ${settings.data}\n`);
      continue;
    }
    results.push(await perform(experiment, settings, console));
  }
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
  const { result, plots } = await runExperiment(experiment, {
    seed: settings.seed,
    count: settings.seeds ?? experiment.defaultSeeds,
    traces,
  });
  if (settings.plotDir !== undefined) await writePlots(settings.plotDir, experiment, plots, console);
  if (!settings.json)
    writeLines(console.out, [...renderExperiment(experiment, result, console.outStyle), '']);
  return result;
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
