import type { Check, Experiment, ExperimentResult, Row } from '../experiments/experiment.ts';
import { columnsOf, cellText, hostText, verdictText } from './experiment-report.ts';

/** An experiment and what it found. */
export interface ShownResult {
  readonly experiment: Pick<Experiment, 'name' | 'title' | 'source' | 'host'>;
  readonly result: ExperimentResult;
}

/** Texts in cells: bars would end them, and line breaks the row. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

function table(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  return [line(headings), line(headings.map(() => '---')), ...rows.map(line)];
}

function rowTable(rows: readonly Row[]): string[] {
  const names = columnsOf(rows).map(({ heading }) => heading);
  return table(
    names,
    rows.map((row) => names.map((name) => cellText(row[name]))),
  );
}

/** Rows that name a table come in one each, under its name. */
function tables(rows: readonly Row[]): string[] {
  const names = [...new Set(rows.map((row) => row['table']))];
  return names.flatMap((name) => {
    const mine = rows.filter((row) => row['table'] === name);
    if (mine.length === 0) return [];
    if (typeof name !== 'string') return [...rowTable(mine), ''];
    const bare = mine.map((row) =>
      Object.fromEntries(Object.entries(row).filter(([key]) => key !== 'table')),
    );
    return [`**${name}**`, '', ...rowTable(bare), ''];
  });
}

const heldText = ({ ok, kind }: Check): string => `${ok ? 'yes' : 'no'}${kind === 'side' ? ', aside' : ''}`;

const checkTable = (checks: readonly Check[]): string[] =>
  table(
    ['what', 'paper', 'here', 'holds', 'rule'],
    checks.map((check) => [check.what, String(check.paper), String(check.got), heldText(check), check.rule]),
  );

/** How it came out with other seeds, in words; nothing where it ran with one alone. */
function againText({ others = [], checks }: ExperimentResult): string {
  if (others.length === 0) return '';
  const turned = new Set(others.flatMap((each) => each.turned));
  const seeds = others.map(({ seed, verdict }) => `with seed ${seed} ${verdictText[verdict]}`).join(', ');
  const names = checks.flatMap(({ what }) => (turned.has(what) ? [cell(what)] : []));
  const turns = names.length === 0 ? 'no check turned' : `turned: ${names.join('; ')}`;
  return ` Run again: ${seeds}; ${turns}.`;
}

function sectionOf({ experiment, result }: ShownResult): string[] {
  const { name, title, source } = experiment;
  const missed = result.checks.filter(({ ok, kind }) => !ok && kind !== 'side');
  return [
    `## ${name}`,
    '',
    `${title} (${source}). Seed ${result.seed}, ${result.seeds} ${result.seeds === 1 ? 'run' : 'runs'} of each setting; intervals are of 95 %${hostText(experiment)}. **${verdictText[result.verdict]}**.${againText(result)}`,
    '',
    ...tables(result.rows),
    ...checkTable(result.checks),
    '',
    ...(missed.length === 0
      ? []
      : ['What differs:', '', ...missed.map(({ what, rule }) => `- ${cell(what)}: ${cell(rule)}`), '']),
  ];
}

const counted = (checks: readonly Check[]): readonly Check[] => checks.filter(({ kind }) => kind !== 'side');

/**
 * Results as one page of Markdown: verdicts first, then each experiment with its tables, checks, and what differs.
 * `others`: experiments that have no results here.
 */
export function resultsMarkdown(shown: readonly ShownResult[], others: readonly string[]): string {
  const summary = table(
    ['experiment', 'what', 'runs', 'verdict', 'checks that count', 'asides'],
    shown.map(({ experiment, result }) => {
      const [all, asides] = [counted(result.checks), result.checks.filter(({ kind }) => kind === 'side')];
      const held = (checks: readonly Check[]): string =>
        `${checks.filter(({ ok }) => ok).length} of ${checks.length}`;
      return [
        `[${experiment.name}](#${experiment.name})`,
        experiment.title,
        String(result.seeds),
        verdictText[result.verdict],
        held(all),
        held(asides),
      ];
    }),
  );
  return [
    '# Results of the experiments',
    '',
    'Written by `outrider experiments all --markdown`. A figure of a paper is _reproduced_ where every value and every',
    'shape that counts holds; it has the _same shape_ where every shape holds, and at least half of all that counts; else',
    'it _differs_. Asides (inputs, chosen parameters, values that we worked out ourselves, claims beside the point) count',
    'for nothing. What was run again with other seeds has the worst of its verdicts. Nothing here was measured on AWS.',
    '',
    ...summary,
    '',
    ...(others.length === 0 ? [] : [`Not run for this page: ${others.join(', ')}.`, '']),
    ...shown.flatMap(sectionOf),
  ].join('\n');
}
