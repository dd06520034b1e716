/** A column of a table: its heading and on which side its cells are aligned. */
export interface Column {
  readonly heading: string;
  readonly align: 'left' | 'right';
}

/** How a table's headings are shown; identity where there is no colour. */
export type Emphasis = (text: string) => string;

const gap = '  ';

/**
 * Lines of a table with columns as wide as their widest cell, two spaces apart and no space at the ends of
 * lines. Without rows, the headings alone. Cells that a row lacks are empty.
 */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  emphasis: Emphasis = (text) => text,
): readonly string[] {
  const widths = columns.map(({ heading }, index) =>
    Math.max(heading.length, ...rows.map((row) => (row[index] ?? '').length)),
  );
  const line = (cells: readonly string[]): string =>
    columns
      .map(({ align }, index) => {
        const cell = cells[index] ?? '';
        const width = widths[index] ?? 0;
        return align === 'left' ? cell.padEnd(width) : cell.padStart(width);
      })
      .join(gap)
      .trimEnd();
  return [emphasis(line(columns.map(({ heading }) => heading))), ...rows.map(line)];
}
