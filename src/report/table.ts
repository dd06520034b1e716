/** A column of a table: its heading and on which side its cells are aligned. */
export interface Column {
  readonly heading: string;
  readonly align: 'left' | 'right';
}

/** How a table's headings are shown; identity where there is no colour. */
export type Emphasis = (text: string) => string;

const gap = '  ';

const foldIndent = '    ';

/**
 * Lines of a table with columns as wide as their widest cell, two spaces apart and no space at the ends of
 * lines. Without rows, the headings alone. Cells that a row lacks are empty. Where `most` is said and lines would be longer,
 * the columns that have no room go to further lines of the same row, which are indented; only words stand out from those.
 */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  emphasis: Emphasis = (text) => text,
  most = Number.POSITIVE_INFINITY,
): readonly string[] {
  const widths = columns.map(({ heading }, index) =>
    Math.max(heading.length, ...rows.map((row) => (row[index] ?? '').length)),
  );
  const groups = groupsOf(widths, most);
  const lines = (cells: readonly string[]): readonly string[] =>
    groups.flatMap((group, number) => {
      const line = group
        .map((index) => {
          const cell = cells[index] ?? '';
          const width = widths[index] ?? 0;
          return columns[index]?.align === 'left' ? cell.padEnd(width) : cell.padStart(width);
        })
        .join(gap)
        .trimEnd();
      if (number === 0) return [line];
      return wrapped(line, most - foldIndent.length).map((part) => foldIndent + part);
    });
  return [...lines(columns.map(({ heading }) => heading)).map(emphasis), ...rows.flatMap(lines)];
}

/** Numbers of the columns that stand on each of the lines of a row. */
function groupsOf(widths: readonly number[], most: number): readonly (readonly number[])[] {
  const groups: number[][] = [[]];
  let used = 0;
  for (const [index, width] of widths.entries()) {
    const group = groups.at(-1) ?? [];
    if (group.length > 0 && used + gap.length + width > most) {
      groups.push([index]);
      used = foldIndent.length + width;
      continue;
    }
    used += (group.length === 0 ? 0 : gap.length) + width;
    group.push(index);
  }
  return groups;
}

/** A text cut between words into lines of at most so many characters; none for an empty one. */
function wrapped(text: string, most: number): readonly string[] {
  if (text.length <= most) return text === '' ? [] : [text];
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/(?<= )(?=[^ ])/)) {
    if (line !== '' && (line + word).trimEnd().length > most) {
      lines.push(line.trimEnd());
      line = '';
    }
    line += word;
  }
  return [...lines, line.trimEnd()];
}
