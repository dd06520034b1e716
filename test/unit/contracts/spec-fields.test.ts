import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import { fieldPath, parseInput } from '../../../src/contracts/invalid.ts';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';
import { formsAt } from '../../../src/contracts/known-fields.ts';

/** A spec in which every field that there is has a value. */
const whole = () => ({
  ...{ version: 1, name: 'words', deadline: '10m', deadlineKind: 'soft', admission: 'refuse', budget: 1 },
  ...{ onBudget: 'stop', guaranteedSlots: 1, weight: 1, storage: 'standard', policy: 'none' },
  policyConfig: { lossShare: 0.25 },
  stages: [
    {
      ...{ name: 'map', operator: 'exec', options: { command: ['cat'] }, credentials: false, partitions: 2 },
      worker: { kind: 'lambda', size: 'small', fallback: 'none' },
      inputs: [
        {
          ...{ s3: ['s3://books/en/'], format: 'csv', header: true, multiline: false, onBadRecord: 'fail' },
          splitBytes: 1_048_576,
        },
      ],
    },
    {
      ...{ name: 'join', tasks: 2, cutInputs: [0] },
      code: { s3: 's3://books/code.mjs', sha256: '0'.repeat(64) },
      inputs: [
        { stage: 'map', pattern: 'all-to-all' },
        { stage: 'map', pattern: 'all-to-all' },
      ],
    },
  ],
  output: 's3://books/out/',
});

type Path = readonly (string | number)[];

const isBranch = (value: unknown): value is Record<string | number, unknown> =>
  typeof value === 'object' && value !== null;

function pathsOf(value: unknown, path: Path = []): readonly Path[] {
  if (!isBranch(value)) return [path];
  const keys = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return [path, ...keys.flatMap((key) => pathsOf(value[key], [...path, key]))];
}

/** The spec with something done to the object or list that holds a field. */
function withField(
  path: Path,
  change: (holder: Record<string | number, unknown>, key: string | number) => void,
) {
  const spec: unknown = whole();
  let holder = spec;
  for (const part of path.slice(0, -1)) holder = isBranch(holder) ? holder[part] : undefined;
  const key = path.at(-1);
  if (!isBranch(holder) || key === undefined) throw new Error(`no such field: ${fieldPath(path)}`);
  change(holder, key);
  return spec;
}

function said(spec: unknown): string | undefined {
  try {
    parseInput(jobSpecSchema, spec);
  } catch (error) {
    if (error instanceof InvalidInputError) return error.message;
    throw error;
  }
  return undefined;
}

const paths = pathsOf(whole()).filter((path) => path.length > 0);
const values: readonly unknown[] = [
  ...[null, true, false, 7, -1, 0, 1.5, 1e308, Number.NaN, '', 'x y', '\0', 'NaN', 's3://', 's3:///key'],
  ...[[], [null], [[]], {}, { colour: 'red' }, 'x'.repeat(2_000), Array.from({ length: 2_000 }, () => 1)],
];

/** What a library says, and nobody who writes a spec should have to read. */
const jargon = /expected|received|Invalid|Too (big|small)|[<>]=|\brecord, |\bint\b|undefined|NaN|is wrong/;

/** What is told first is of a field, and says what would be right. */
const told = /^[a-z][\w.[\]]* (must |is missing; it must be |is not a known field|is for )/;

function expectPlain(message: string, path: Path): void {
  expect(message).not.toMatch(jargon);
  expect(message).not.toContain('\n');
  expect(message).toMatch(told);
  // What one field may be can hang on another: they lie in one stage.
  const [top = '', place] = path;
  expect(message.startsWith(typeof place === 'number' ? `${top}[${String(place)}]` : String(top))).toBe(true);
}

describe('each field of a spec', () => {
  it('is in the table below', () => {
    const objects: readonly Path[] = [[], ['stages', 0], ['stages', 0, 'worker'], ['stages', 1, 'code']];
    for (const object of [...objects, ['stages', 0, 'inputs', 0], ['stages', 1, 'inputs', 0]])
      for (const name of formsAt(jobSpecSchema, object).flatMap(({ names }) => names)) {
        const isThere = paths.some((path) => path.at(-1) === name);
        expect(isThere, fieldPath([...object, name])).toBe(true);
      }
  });

  it.each(paths.map((path) => [fieldPath(path), path] as const))(
    'that holds what it must not is named, with what would be right: %s',
    (_name, path) => {
      let refused = 0;
      for (const value of values) {
        const message = said(withField(path, (holder, key) => (holder[key] = value)));
        if (message === undefined) continue;
        refused += 1;
        expectPlain(message, path);
      }
      // Free text and free options take much.
      expect(refused).toBeGreaterThan(path.includes('options') ? -1 : values.length / 3);
    },
  );

  it.each(
    paths.filter((path) => typeof path.at(-1) === 'string').map((path) => [fieldPath(path), path] as const),
  )('that is missing, or written otherwise, is named, too: %s', (_name, path) => {
    const without = said(withField(path, (holder, key) => Reflect.deleteProperty(holder, key)));
    if (without !== undefined) expectPlain(without, path);
    const misspelt = said(withField(path, (holder, key) => (holder[`${String(key)}s`] = 1)));
    if (path.includes('options') && path.at(-1) !== 'options') expect(misspelt).toBeUndefined();
    else if (path[0] !== 'policyConfig' || path.length === 1)
      expect(misspelt).toBe(
        `${fieldPath(path)}s is not a known field; did you mean "${String(path.at(-1))}"?`,
      );
  });
});
