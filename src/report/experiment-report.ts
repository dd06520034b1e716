import type { Check, Experiment, ExperimentResult, Row, Verdict } from '../experiments/experiment.ts';
import type { Style } from './style.ts';
import { type Column, renderTable } from './table.ts';

/** A verdict as people read it. */
export const verdictText: Readonly<Record<Verdict, string>> = {
  reproduced: 'reproduced',
  'same-shape': 'same shape',
  differs: 'differs',
};

/** What jobs ran on, as people read it; nothing of a cluster of the experiment's own. */
export function hostText({ host }: Pick<Experiment, 'host'>): string {
  if (host === undefined) return '';
  return host === 'lambda'
    ? '; on simulated Lambda (host lambda)'
    : "; on the papers' clusters (host hadoop: fixed nodes, kills at once)";
}

/** A field as people read it. */
export const cellText = (value: Row[string] | undefined): string => {
  if (value === null || value === undefined) return '-';
  return typeof value === 'number' ? String(Math.round(value * 1_000) / 1_000) : value;
};

/** A column for each field of any row, in the order of the first that has it. */
export function columnsOf(rows: readonly Row[]): Column[] {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return names.map((heading) => {
    const isNumeric =
      rows.some((row) => typeof row[heading] === 'number') &&
      rows.every((row) => typeof row[heading] !== 'string');
    return { heading, align: isNumeric ? 'right' : 'left' };
  });
}

/** The table of rows that differ in their fields: a column for each field, `-` where a row lacks it. */
export function renderRows(rows: readonly Row[], style: Style): readonly string[] {
  const columns = columnsOf(rows);
  return rows.length === 0
    ? []
    : renderTable(
        columns,
        rows.map((row) => columns.map(({ heading }) => cellText(row[heading]))),
        style.heading,
      );
}

/** Rows that name a table of theirs in `table` come in one table each, under its name; the others in one. */
function renderTables(rows: readonly Row[], style: Style): readonly string[] {
  const names = [...new Set(rows.map((row) => row['table']))];
  return names.flatMap((name, place) => {
    const mine = rows.filter((row) => row['table'] === name);
    if (typeof name !== 'string') return renderRows(mine, style);
    const bare = mine.map((row) =>
      Object.fromEntries(Object.entries(row).filter(([key]) => key !== 'table')),
    );
    return [...(place === 0 ? [] : ['']), style.heading(name), ...renderRows(bare, style)];
  });
}

function checkLines(checks: readonly Check[], style: Style): string[] {
  return checks.flatMap(({ what, paper, got, rule, kind, ok }) => {
    const mark = ok ? style.good('ok ') : kind === 'side' ? style.dim('not') : style.bad('NOT');
    const lines = [`  ${mark}  ${what}: paper ${paper}; here ${got}`];
    return ok && rule === 'equal'
      ? lines
      : [...lines, style.dim(`       ${kind === 'side' ? 'aside, ' : ''}${rule}`)];
  });
}

/** An experiment with its table, its checks beside the paper's figures, and its verdict. */
export function renderExperiment(
  experiment: Experiment,
  result: ExperimentResult,
  style: Style,
): readonly string[] {
  const text = verdictText[result.verdict];
  const verdict = result.verdict === 'differs' ? style.bad(text) : style.good(text);
  const held = result.checks.filter(({ ok }) => ok).length;
  return [
    style.heading(`${experiment.name}: ${experiment.title}`),
    style.dim(
      `${experiment.source}; seed ${result.seed}, ${result.seeds} ${result.seeds === 1 ? 'run' : 'runs'} of each setting; intervals are of 95 %${hostText(experiment)}`,
    ),
    '',
    ...renderTables(result.rows, style),
    '',
    ...checkLines(result.checks, style),
    '',
    `${experiment.name}: ${verdict} (${held} of ${result.checks.length} checks hold)`,
    ...(result.others ?? []).map(
      ({ seed, verdict: other, turned }) =>
        `  with seed ${seed}: ${verdictText[other]}${turned.length === 0 ? '' : `; turned: ${turned.join('; ')}`}`,
    ),
  ];
}
