import type { KeyValue, TaskOutput } from '../worker/operator.ts';

const bufferBytes = 128 * 1024;
const newline = 0x0a;
const tabBytes = Buffer.from('\t');

/** Gathers lines into larger pieces for `TaskOutput.write`. Await what a call returns, as with the output. */
export class LineWriter {
  private readonly buffer = Buffer.allocUnsafe(bufferBytes);
  private used = 0;
  private readonly output: TaskOutput;

  constructor(output: TaskOutput) {
    this.output = output;
  }

  /** Adds bytes [start, end) of `bytes` and a newline. */
  line(bytes: Buffer, start = 0, end = bytes.length): Promise<void> | undefined {
    const length = end - start + 1;
    if (this.used + length > bufferBytes) return this.makeRoom(bytes, start, end);
    this.used += bytes.copy(this.buffer, this.used, start, end);
    this.buffer[this.used++] = newline;
    return undefined;
  }

  /** Adds a record: the key, and if the value is not empty a TAB and it. */
  record({ key, value }: KeyValue): Promise<void> | undefined {
    return this.line(value.length === 0 ? key : Buffer.concat([key, tabBytes, value]));
  }

  /** Writes what is held; needed at the end. */
  async flush(): Promise<void> {
    if (this.used > 0) await this.output.write(this.buffer.subarray(0, this.used));
    this.used = 0;
  }

  private async makeRoom(bytes: Buffer, start: number, end: number): Promise<void> {
    await this.flush();
    if (end - start + 1 <= bufferBytes) {
      await this.line(bytes, start, end);
      return;
    }
    await this.output.write(bytes.subarray(start, end));
    await this.output.write(Buffer.of(newline));
  }
}

/** Calls `visit` with the begin and end (without newline) of each line; waits for what it returns. */
export async function eachLine(
  bytes: Buffer,
  visit: (start: number, end: number) => Promise<void> | undefined,
): Promise<void> {
  for (let start = 0; start < bytes.length;) {
    const found = bytes.indexOf(newline, start);
    const end = found < 0 ? bytes.length : found;
    const wait = visit(start, end);
    if (wait !== undefined) await wait;
    start = end + 1;
  }
}
