import { describe, expect, it } from 'vitest';
import { Phases, renderPhases } from '../../../src/cli/phases.ts';
import { memoryConsole } from './fixtures.ts';

const MB = 1024 * 1024;

function phasesOn(columns: number | undefined, isQuiet = false) {
  const { console, written } = memoryConsole('/');
  return { phases: new Phases({ ...console, terminalColumns: () => columns }, isQuiet), written };
}

describe('progress of a command', () => {
  it('is said as soon as a phase begins, a line each where nothing can be redrawn', () => {
    const { phases, written } = phasesOn(undefined);
    phases.enter('starting');
    expect(written.err).toBe('starting\n');
    phases.enter('synthesizing');
    phases.enter('starting');
    phases.enter('running');
    phases.end();
    expect(written.err).toBe('starting\nsynthesizing\nstarting\n');
    expect(Object.keys(phases.times())).toEqual(['starting', 'synthesizing', 'running']);
  });

  it('tells bytes of large uploads now and then, and not of small ones', () => {
    const { phases, written } = phasesOn(undefined);
    const onBytes = phases.enterBytes('uploading', 64 * MB, 2);
    for (let part = 0; part < 8; part++) onBytes(8 * MB);
    expect(written.err).toBe(
      'uploading 64.0 MiB in 2 files\n' +
        'uploading 16.0 MiB of 64.0 MiB in 2 files\n' +
        'uploading 32.0 MiB of 64.0 MiB in 2 files\n' +
        'uploading 48.0 MiB of 64.0 MiB in 2 files\n',
    );
    const small = phases.enterBytes('downloading', 10, 1);
    small(5);
    small(5);
    expect(written.err).toMatch(/files\ndownloading 10 B in 1 file\n$/);
    phases.end();
  });

  it('is one line on a terminal, drawn at once, never wider than it, and gone in the end', () => {
    const { phases, written } = phasesOn(24);
    phases.enterBytes('uploading', 64 * MB, 123_456);
    const drawn = written.err.replace('\r\u001b[2K', '');
    expect(drawn).toBe('uploading 64.0 MiB in 1');
    phases.end();
    expect(written.err.endsWith('\r\u001b[2K')).toBe(true);
  });

  it('shows nothing where nobody wants it', () => {
    const { phases, written } = phasesOn(80, true);
    phases.enter('starting');
    phases.enterBytes('uploading', 64 * MB, 1)(64 * MB);
    phases.end();
    expect(written.err).toBe('');
  });
});

describe('the whole time', () => {
  it('is the sum of its parts, in the order in which they come', () => {
    expect(renderPhases({ downloading: 400, starting: 3_200, running: 60_000 })).toBe(
      '1m04s: starting 3.2s, running 1m00s, downloading 0.4s',
    );
  });
});
