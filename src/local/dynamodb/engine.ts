/** An answer in DynamoDB's protocol. */
export interface EngineAnswer {
  readonly status: number;
  /** A JSON document. */
  readonly body: string;
}

/** A database that only the process that started it can reach. */
export interface Engine {
  /** The database's own process, not a wrapper's. */
  readonly pid: number;
  /** Settles once the process is gone, whoever ended it. */
  readonly exited: Promise<void>;
  /**
   * Performs an operation of DynamoDB.
   *
   * @param operation - without the version, such as `PutItem`.
   * @param body - the request's document as it came; what is no JSON object is refused as AWS does it.
   * @returns errors of DynamoDB as answers; once the process is gone an answer with status 500.
   */
  perform(operation: string, body: Buffer): Promise<EngineAnswer>;
  /** Ends the process; safe to call twice. Data written before are kept. */
  close(): Promise<void>;
}

/** Thrown when no engine is installed, or the engine does not answer in time. */
export class DynamoDbUnavailableError extends Error {
  override readonly name = 'DynamoDbUnavailableError';
}

const SERVER_ERRORS: ReadonlySet<string> = new Set(['InternalServerError', 'InternalFailure']);

/** Errors of the protocol's envelope, and those of DynamoDB itself, have names of different origin on AWS. */
const ENVELOPE_ERRORS =
  /^(SerializationException|UnknownOperationException|ValidationException|AccessDenied|.*Signature|.*Token|.*Client)/;

/** An error as DynamoDB answers it. */
export function errorAnswer(name: string, message: string, details: object = {}): EngineAnswer {
  const origin = ENVELOPE_ERRORS.test(name) ? 'com.amazon.coral.service' : 'com.amazonaws.dynamodb.v20120810';
  return {
    status: SERVER_ERRORS.has(name) ? 500 : 400,
    body: JSON.stringify({ __type: `${origin}#${name}`, message, ...details }),
  };
}
