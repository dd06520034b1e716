import pc from 'picocolors';

/** Colours of reports: each gives its text unchanged where colour is off; and how wide they may be. */
export interface Style {
  /** Characters of a line of the terminal; undefined where there is none, and lines may be of any length. */
  readonly columns?: number;
  readonly heading: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly active: (text: string) => string;
}

/** Colour only on a terminal, and not where `NO_COLOR` is set to anything (https://no-color.org). */
export function makeStyle(target: {
  readonly isTty: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly columns?: number | undefined;
}): Style {
  const { NO_COLOR: noColor, TERM: terminal } = target.env;
  const colors = pc.createColors(
    target.isTty && (noColor === undefined || noColor === '') && terminal !== 'dumb',
  );
  return {
    ...(target.isTty && target.columns !== undefined ? { columns: target.columns } : {}),
    heading: colors.bold,
    good: colors.green,
    bad: colors.red,
    dim: colors.dim,
    active: colors.cyan,
  };
}
