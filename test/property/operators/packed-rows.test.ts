import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RowPacker, RowUnpacker } from '../../../src/operators/packed-rows.ts';
import type { Row } from '../../../src/worker/operator.ts';

/** Rows as NDJSON gives them: any names, any values, halves of surrogate pairs among the characters. */
const arbName = fc.oneof(fc.constantFrom('id', '__proto__', '7', '', 'é', 'constructor'), fc.string());
const arbText = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\ud800', 'x\udc00y', '"', '\n', ''));
const arbValue = fc.oneof(arbText, fc.jsonValue());
const arbRow = fc
  .array(fc.tuple(arbName, arbValue), { maxLength: 6 })
  // As JSON.parse makes them: "__proto__" is a column like any other.
  .map((cells) => JSON.parse(JSON.stringify(Object.fromEntries(cells))) as Row);

describe('rows that a join ships', () => {
  it.each([true, false])('arrive as they were, whoever shipped them (keys as text: %s)', (keysAsText) => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(2), arbRow, fc.jsonValue()), { maxLength: 30 }), (shipped) => {
        const packers = [0, 1, 70_000].map((task) => new RowPacker({ task, key: 'id', keysAsText }));
        const said: Buffer[] = [];
        const packed = shipped.map(([who, given, id]) => {
          const row = Object.hasOwn(given, 'id') ? { ...given, id } : given;
          const announced = packers[who]?.announce(Object.keys(row), false);
          if (announced !== undefined) said.push(announced);
          const text = JSON.stringify(row['id'] ?? null);
          const key = Buffer.from(keysAsText && typeof row['id'] !== 'string' ? JSON.stringify(text) : text);
          return { row, key, bytes: packers[who]?.pack(row) ?? Buffer.alloc(0) };
        });
        const unpacker = new RowUnpacker();
        for (const each of said) unpacker.learn(each);
        for (const { row, key, bytes } of packed)
          expect(JSON.stringify(unpacker.unpack(bytes, key))).toBe(JSON.stringify(row));
      }),
    );
  });

  it('name their columns once, and again only where a task has seen hundreds of lists of them', () => {
    const packer = new RowPacker({ task: 3, key: 'id', keysAsText: false });
    const unpacker = new RowUnpacker();
    let said = 0;
    for (let round = 0; round < 600; round++) {
      const row = { id: round, [`column_${round % 300}`]: 'x' };
      const announced = packer.announce(Object.keys(row), false);
      if (announced !== undefined) {
        said++;
        unpacker.learn(announced);
      }
      expect(unpacker.unpack(packer.pack(row), Buffer.from(String(round)))).toEqual(row);
    }
    expect(said).toBe(256);
  });

  it('take as many bytes as their CSV, without the key', () => {
    const packer = new RowPacker({ task: 0, key: 'id', keysAsText: false });
    const row = { id: '12345678', name: 'somebody', city: 'somewhere', note: 'x'.repeat(60) };
    packer.announce(Object.keys(row), true);
    // Kind, task and schema; the key's mark; a byte and the text of each other cell.
    expect(packer.pack(row)).toHaveLength(3 + 1 + (1 + 8) + (1 + 9) + (1 + 60));
  });

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['another kind', Buffer.from('[1]')],
    ['columns that nobody named', Buffer.from([0, 9, 9])],
    ['an end within a cell', Buffer.from([0, 0, 0, 20, 65])],
    ['more than its cells', Buffer.from([0, 0, 0, 2, 65, 2, 66, 1])],
  ])('are refused where they are %s', (_, bytes) => {
    const unpacker = new RowUnpacker();
    unpacker.learn(Buffer.from('{"task":0,"schema":0,"columns":["a","b"],"known":false}'));
    expect(() => unpacker.unpack(bytes, Buffer.from('"k"'))).toThrow('a join reads the output of join-map');
  });
});
