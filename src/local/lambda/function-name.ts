/** The parts of what callers name a function by. */
export interface FunctionName {
  readonly name: string;
  readonly qualifier: string | undefined;
}

const ARN = /^arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:([\w-]{1,140})(?::([\w$-]{1,128}))?$/;
const PARTIAL_ARN = /^\d{12}:function:([\w-]{1,140})(?::([\w$-]{1,128}))?$/;
const PLAIN = /^([\w-]{1,140})(?::([\w$-]{1,128}))?$/;

/** Reads a name, a partial ARN or an ARN, each with or without qualifier; undefined if it is none of these. */
export function parseFunctionName(nameOrArn: string): FunctionName | undefined {
  const match = ARN.exec(nameOrArn) ?? PARTIAL_ARN.exec(nameOrArn) ?? PLAIN.exec(nameOrArn);
  const name = match?.[1];
  return name === undefined ? undefined : { name, qualifier: match?.[2] };
}
