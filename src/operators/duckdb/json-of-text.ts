import { sqlText } from './engine.ts';

/** Control characters that DuckDB writes with other digits than JavaScript. */
const rareControls = Array.from({ length: 32 }, (_, code) => code).filter((code) =>
  /[a-f]/.test(code.toString(16).padStart(4, '0')),
);

/** The JSON of a text of SQL, as JavaScript writes it. */
export function jsonOfText(text: string): string {
  const json = `to_json(${text})::VARCHAR`;
  // Written by hand where there is one of them: a text may hold what looks like its escape.
  const escapes = [
    ['\\', '\\\\'],
    ['"', '\\"'],
  ].map(([from = '', to = '']) => [sqlText(from), sqlText(to)] as const);
  const controls = Array.from(
    { length: 32 },
    (_, code) =>
      [`chr(${String(code)})`, sqlText(JSON.stringify(String.fromCharCode(code)).slice(1, -1))] as const,
  );
  const byHand = [...escapes, ...controls].reduce(
    (inner, [from, to]) => `replace(${inner}, ${from}, ${to})`,
    text,
  );
  const isRare = rareControls.map((code) => `contains(${text}, chr(${String(code)}))`).join(' OR ');
  return `CASE WHEN contains(${json}, '\\u00') AND (${isRare}) THEN concat('"', ${byHand}, '"') ELSE ${json} END`;
}
