import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { beforeAll, describe, expect, it } from 'vitest';

const root = dirname(createRequire(import.meta.url).resolve('outrider/package.json'));

/** Begins every program. */
const head = `
import { job, read, type Dataset, type Keyed } from 'outrider';
const lines = read.text();
const rows = read.csv({ columns: ['id', 'amount'] });
const events = read.ndjson<{ user: string; at: number }>();
`;

/** Each must be refused with an error of this code, on its own line and nowhere else. */
const refused: readonly (readonly [what: string, program: string, code: number])[] = [
  ['a method that records do not have', 'lines.map((line) => line.toFixed(2));', 2551],
  ['a column that was not named', 'rows.map(({ amuont }) => amuont);', 2339],
  ['arithmetic on the text of a cell', 'rows.map(({ amount }) => amount * 2);', 2362],
  [
    'a field that an earlier step has dropped',
    'events.map(({ user }) => ({ user })).filter(({ at }) => at > 0);',
    2339,
  ],
  ['an async function in map', 'lines.map(async (line) => line);', 2345],
  ['a promise in map', 'lines.map((line) => Promise.resolve(line));', 2345],
  [
    'what may be a promise in map',
    "lines.map((line) => (line === '' ? line : Promise.resolve(line)));",
    2345,
  ],
  ['promises that flatMap gives', 'lines.flatMap((line) => [Promise.resolve(line)]);', 2345],
  ['an async flatMap', 'lines.flatMap(async (line) => [line]);', 2322],
  ['an async filter', 'lines.filter(async () => true);', 2769],
  ['a text where flatMap gives a list', 'lines.flatMap((line) => line.trim());', 2322],
  ['a number where flatMap gives a list', 'lines.flatMap((line) => line.length);', 2322],
  ['an object as a key', 'events.keyBy((event) => event);', 2322],
  ['a date as a key', 'events.keyBy(({ at }) => new Date(at));', 2322],
  ['nothing as a key', 'events.groupBy(({ user }) => { user; });', 2345],
  ['a function as a sort key', 'lines.sortBy((line) => () => line);', 2345],
  ['an object to be the top by', 'events.top(3, (event) => event);', 2322],
  ['a top without its number', 'events.top((event: { at: number }) => event.at);', 2554],
  ['reduce without keys', 'lines.reduce((a: string, b: string) => a + b);', 2339],
  [
    'a reduction that changes the type',
    'lines.keyBy((line) => line).reduce((a, b) => a.length + b.length);',
    2322,
  ],
  [
    'an aggregate whose zero has another type',
    "lines.keyBy((line) => line).aggregate({ zero: () => '', add: (sum: number) => sum + 1 });",
    2322,
  ],
  [
    'an aggregate that merges another type',
    'lines.keyBy((line) => line).aggregate({ zero: () => 0, add: (sum) => sum + 1, merge: (a: string, b: string) => a + b });',
    2322,
  ],
  [
    'an aggregate without its zero',
    'lines.keyBy((line) => line).aggregate({ add: (sum: number) => sum + 1 });',
    2345,
  ],
  ['a join with records that have no keys', 'lines.keyBy((line) => line).join(rows);', 2345],
  [
    'a join of a text with a number',
    'events.keyBy(({ user }) => user).join(events.keyBy(({ at }) => at));',
    2345,
  ],
  [
    'a kind of join that there is not',
    "lines.keyBy((line) => line).join(lines.keyBy((line) => line), { how: 'outer' });",
    2769,
  ],
  [
    'the right side of a left join, which may be missing',
    "events.keyBy(({ user }) => user).join(rows.keyBy(({ id }) => id), { how: 'left' }).map(([, [, row]]) => row.amount);",
    18048,
  ],
  [
    'the key of a group as another type',
    'events.groupBy(({ at }) => at).map(([at]) => at.toUpperCase());',
    2339,
  ],
  ['objects written as text', 'events.write.text();', 2554],
  ['a format that gives no text', 'events.write.text(({ at }) => at);', 2322],
  ['a column that records do not have', "events.write.csv(['user', 'age']);", 2322],
  ['a job of records that nothing writes', "job('x', lines);", 2345],
  ['a job without a name', 'job(lines.write.text());', 2554],
  ['a setting that there is not', "job('x', lines.write.text(), { dedline: '10m' });", 2561],
  ['a policy that there is not', "job('x', lines.write.text(), { policy: 'fast' });", 2322],
  ['an option of read that there is not', 'read.text({ header: true });', 2345],
  ['something that the context does not have', 'lines.map((line, context) => context.inputs);', 2551],
  ['a counter without its name', 'lines.map((line, context) => context.count(3));', 2345],
  ['a file name where there may be none', 'lines.map((line, context) => context.input.name);', 18048],
];

/** Must compile as they are: types go from step to step. */
const accepted: readonly (readonly [what: string, program: string])[] = [
  [
    'types from step to step',
    'const all: Dataset<[key: string, value: number]> = lines.keyBy((line) => line).aggregate({ zero: () => 0, add: (sum) => sum + 1, merge: (a, b) => a + b });',
  ],
  [
    'a filter that narrows',
    'const texts: Dataset<string> = lines.map((line): string | undefined => line || undefined).filter((line) => line !== undefined);',
  ],
  [
    'keys of several parts',
    'const pairs: Keyed<readonly [string, number], { user: string; at: number }> = events.keyBy(({ user, at }) => [user, at]);',
  ],
  [
    'both sides of a join',
    'const both: Dataset<[key: string, pair: [left: { user: string; at: number }, right: Readonly<Record<"id" | "amount", string>>]]> = events.keyBy(({ user }) => user).join(rows.keyBy(({ id }) => id));',
  ],
  ['a map that is not done still', 'lines.map((line) => { throw new Error(line); });'],
  ['results of any type', 'lines.map((line) => JSON.parse(line)).write.ndjson();'],
  ['a function that has a name', 'const texts: Dataset<string> = lines.map(String);'],
  ['a generator', 'const numbers: Dataset<number> = lines.flatMap(function* (line) { yield line.length; });'],
  [
    'a whole job',
    "export default job('x', events.sortBy(({ at }) => at, { descending: true }).write.csv(['user', 'at']), { deadline: '10m', policy: 'outrider' });",
  ],
];

const fileOf = (kind: string, index: number): string => join(root, 'test', `${kind}-${String(index)}.ts`);

let diagnosticsOf: (file: string) => readonly ts.Diagnostic[];

beforeAll(() => {
  const programs = new Map<string, string>();
  refused.forEach(([, text], index) => programs.set(fileOf('refused', index), head + text));
  accepted.forEach(([, text], index) => programs.set(fileOf('accepted', index), head + text));
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const settings = { ...options, incremental: false, noUnusedLocals: false, noUnusedParameters: false };
  delete settings.tsBuildInfoFile;
  const host = ts.createCompilerHost(settings);
  const readFile = host.readFile.bind(host);
  const fileExists = host.fileExists.bind(host);
  host.readFile = (path) => programs.get(path) ?? readFile(path);
  host.fileExists = (path) => programs.has(path) || fileExists(path);
  const getSourceFile = host.getSourceFile.bind(host);
  host.getSourceFile = (path, language, ...rest) => {
    const text = programs.get(path);
    return text === undefined
      ? getSourceFile(path, language, ...rest)
      : ts.createSourceFile(path, text, language);
  };
  const program = ts.createProgram([...programs.keys()], settings, host);
  diagnosticsOf = (file) => {
    const source = program.getSourceFile(file);
    return source === undefined
      ? []
      : [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
  };
});

const told = (diagnostics: readonly ts.Diagnostic[]): readonly string[] =>
  diagnostics.map(
    ({ code, messageText }) => `TS${String(code)} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
  );

describe('programs that must not compile', () => {
  it.each(refused.map(([what, , code], index) => ({ what, code, index })))('$what', ({ code, index }) => {
    const diagnostics = diagnosticsOf(fileOf('refused', index));
    expect(
      diagnostics.map((each) => each.code),
      told(diagnostics).join('\n'),
    ).toEqual([code]);
    expect(diagnostics[0]?.start).toBeGreaterThanOrEqual(head.length);
  });
});

describe('programs that must compile', () => {
  it.each(accepted.map(([what], index) => ({ what, index })))('$what', ({ index }) => {
    expect(told(diagnosticsOf(fileOf('accepted', index)))).toEqual([]);
  });
});
