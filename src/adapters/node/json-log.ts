import type { Log } from '../../ports/log.ts';

type Facts = Readonly<Record<string, unknown>>;

/** One JSON line per event on stdout, which is what Lambda's log reader and CloudWatch's filters take. */
export class JsonLog implements Log {
  private readonly facts: Facts;
  private readonly writeLine: (line: string) => void;

  /** @param facts - facts of every line, such as the job. @param writeLine - takes one line with its newline. */
  constructor(
    facts: Facts = {},
    writeLine: (line: string) => void = (line) => {
      process.stdout.write(line);
    },
  ) {
    this.facts = facts;
    this.writeLine = writeLine;
  }

  /** A log that adds `facts` to each of its lines. */
  with(facts: Facts): JsonLog {
    return new JsonLog({ ...this.facts, ...facts }, this.writeLine);
  }

  info(event: string, facts: Facts = {}): void {
    this.write('info', event, facts);
  }

  warn(event: string, facts: Facts = {}): void {
    this.write('warn', event, facts);
  }

  private write(level: 'info' | 'warn', event: string, facts: Facts): void {
    const head = { at: new Date().toISOString(), level, event };
    try {
      this.writeLine(`${JSON.stringify({ ...head, ...this.facts, ...facts }, plain)}\n`);
    } catch {
      // A fact that cannot be written (a cycle, a closed pipe) must not end the work that it tells of.
      try {
        this.writeLine(`${JSON.stringify({ ...head, facts: 'unwritable' })}\n`);
      } catch {
        // Nowhere left to say it.
      }
    }
  }
}

/** JSON knows neither errors nor bigints. */
function plain(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (!(value instanceof Error)) return value;
  const details = 'details' in value ? value.details : undefined;
  return { name: value.name, message: value.message, stack: value.stack, details, cause: value.cause };
}
