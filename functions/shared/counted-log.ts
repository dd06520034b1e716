import type { Log } from '../../src/ports/log.ts';
import type { RequestMeter } from '../../src/ports/request-meter.ts';

/** What a line holds besides its facts: time, level, quotes, and what CloudWatch adds to each. */
const LINE_BYTES = 100;

/** A log whose lines are counted, roughly, by the bytes that they take. */
export class CountedLog implements Log {
  private readonly inner: Log;
  private readonly requests: RequestMeter;

  constructor(inner: Log, requests: RequestMeter) {
    this.inner = inner;
    this.requests = requests;
  }

  info(event: string, facts: Readonly<Record<string, unknown>> = {}): void {
    this.note(event, facts);
    this.inner.info(event, facts);
  }

  warn(event: string, facts: Readonly<Record<string, unknown>> = {}): void {
    this.note(event, facts);
    this.inner.warn(event, facts);
  }

  private note(event: string, facts: object): void {
    this.requests.count({ logBytes: LINE_BYTES + event.length + sizeOf(facts) });
  }
}

/** What cannot be written is not counted either. */
function sizeOf(facts: object): number {
  try {
    return JSON.stringify(facts).length;
  } catch {
    return 0;
  }
}
