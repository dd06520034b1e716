/** A failure that S3 has a name for; the server turns it into S3's XML answer. */
export class S3Error extends Error {
  override readonly name = 'S3Error';
  readonly status: number;
  readonly code: string;
  /** Extra response headers, as `content-range` of a 416. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** The request is well formed, but asks for what this server does not do. */
export function notImplemented(what: string): S3Error {
  return new S3Error(501, 'NotImplemented', `${what} implies functionality that is not implemented.`);
}

/** A condition of the request does not hold: 412. */
export function preconditionFailed(condition: string): S3Error {
  return new S3Error(
    412,
    'PreconditionFailed',
    `At least one of the pre-conditions you specified did not hold: ${condition}`,
  );
}

/** 404 for an object. */
export function noSuchKey(): S3Error {
  return new S3Error(404, 'NoSuchKey', 'The specified key does not exist.');
}

/** 404 for a multipart upload that was completed, aborted, or never was. */
export function noSuchUpload(): S3Error {
  return new S3Error(
    404,
    'NoSuchUpload',
    'The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.',
  );
}

/** 400 with a code of S3's own. */
export function badRequest(code: string, message: string): S3Error {
  return new S3Error(400, code, message);
}

/** True for a file-system error with the given code, as `ENOENT`. */
export function hasErrorCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
