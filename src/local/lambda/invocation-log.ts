import { readFileSync } from 'node:fs';

import { LOG_TAIL_BYTES } from './model.ts';

/** The last lines of an invocation, cut to what LogType=Tail returns. */
export class LogTail {
  private lines: string[] = [];
  private sizeBytes = 0;

  add(line: string): void {
    this.lines.push(line);
    this.sizeBytes += Buffer.byteLength(line) + 1;
    while (this.sizeBytes > LOG_TAIL_BYTES && this.lines.length > 1) {
      this.sizeBytes -= Buffer.byteLength(this.lines.shift() ?? '') + 1;
    }
  }

  /** At most 4 KB of text; empty if nothing was logged. */
  text(): string {
    const text = this.lines.map((line) => `${line}\n`).join('');
    return Buffer.from(text).subarray(-LOG_TAIL_BYTES).toString('utf8');
  }
}

/** Peak resident memory of a process in whole MB; undefined where /proc is absent or the process is gone. */
export function peakMemoryMb(pid: number | undefined): number | undefined {
  if (pid === undefined || process.platform !== 'linux') return undefined;
  try {
    const kilobytes = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'))?.[1];
    return kilobytes === undefined ? undefined : Math.ceil(Number(kilobytes) / 1024);
  } catch {
    return undefined;
  }
}

/** The figures of a REPORT line. */
export interface InvocationFigures {
  readonly requestId: string;
  readonly durationMs: number;
  readonly memoryMb: number;
  readonly peakMb: number | undefined;
  /** Only of the first invocation of an environment. */
  readonly initMs: number | undefined;
}

/** A REPORT line in AWS's format; since 2025 the time to initialize is billed too. */
export function reportLine(figures: InvocationFigures): string {
  const billedMs = Math.ceil(figures.durationMs + (figures.initMs ?? 0));
  const fields = [
    `REPORT RequestId: ${figures.requestId}`,
    `Duration: ${figures.durationMs.toFixed(2)} ms`,
    `Billed Duration: ${String(billedMs)} ms`,
    `Memory Size: ${String(figures.memoryMb)} MB`,
  ];
  if (figures.peakMb !== undefined) fields.push(`Max Memory Used: ${String(figures.peakMb)} MB`);
  if (figures.initMs !== undefined) fields.push(`Init Duration: ${figures.initMs.toFixed(2)} ms`);
  return fields.join('\t');
}
