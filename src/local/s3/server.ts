import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDirectoryBucket } from '../../contracts/directory-buckets.ts';
import { STORAGE_FULL } from '../../contracts/errors.ts';
import { fullDiskText } from '../full-disk.ts';
import { awaitFault } from '../http/fault-hook.ts';
import type { FaultHook } from '../http/fault-hook.ts';
import { listen } from '../http/listen.ts';
import { type Principals, principalsOf } from '../http/principals.ts';
import { checkSigV4 } from '../http/sigv4.ts';
import type { Credentials } from '../http/sigv4.ts';
import { giveBuffer, takeBuffer } from './buffers.ts';
import * as buckets from './bucket-operations.ts';
import { completeMultipartUpload } from './complete-upload.ts';
import { BucketSessions, grantedMode, refuseForDirectory } from './directory-buckets.ts';
import { badRequest, notImplemented, S3Error } from './errors.ts';
import * as multipart from './multipart-operations.ts';
import * as handed from './handed-files.ts';
import { type HarmHook, harmObject } from './harm-object.ts';
import { objectFilesOf } from './object-files.ts';
import type { ObjectFiles } from './object-files.ts';
import * as objects from './object-operations.ts';
import { isBucketName, ObjectStore } from './object-store.ts';
import { chooseOperation, parseTarget } from './request.ts';
import type { FileBody, Operation, Reply, S3Request } from './request.ts';
import { listUploads, removeUpload } from './upload-store.ts';
import { errorDocument } from './xml.ts';

/** Options of {@link startS3Server}. */
export interface S3ServerOptions {
  /** Made if absent. Holds all buckets; links must work in it. */
  readonly rootDir: string;
  /** 0, the default, takes any free port. */
  readonly port?: number;
  readonly credentials: Credentials;
  /** Whose keys are accepted; absent: `credentials` alone. */
  readonly principals?: Principals;
  readonly region: string;
  readonly onRequest?: FaultHook;
  /** Whether callers on this machine may move bytes by files: see `handed-files.ts`. They may not by default. */
  readonly handsFiles?: boolean;
  /** Says what becomes of objects that were written. */
  readonly onWritten?: HarmHook;
  /** `host:port` of proxies before it that pass requests on as they were signed. */
  readonly hosts?: ReadonlySet<string>;
}

/** What a running server goes by. */
interface Serving extends S3ServerOptions {
  readonly sessions: BucketSessions;
}

/** A running S3 server; buckets are addressed by path (`forcePathStyle`). */
export interface S3Server {
  readonly endpoint: string;
  /** Makes a bucket; one that exists is left as it is. Throws S3Error InvalidBucketName. */
  createBucket(name: string): Promise<void>;
  /** The objects, for whoever runs this server. */
  readonly files: ObjectFiles;
  /** Where files of objects lie by now that were not whole as it started; the objects are lost. */
  readonly setAside: readonly string[];
  /** Removes all objects of a bucket, and its uploads under way, as they are gone with a zone. Throws S3Error NoSuchBucket. */
  emptyBucket(name: string): Promise<void>;
  close(): Promise<void>;
}

type Handler = (store: ObjectStore, request: S3Request, region: string) => Promise<Reply> | Reply;

const HANDLERS: Readonly<Record<Exclude<Operation, 'CreateSession'>, Handler>> = {
  ListBuckets: buckets.listBuckets,
  CreateBucket: buckets.createBucket,
  HeadBucket: buckets.headBucket,
  DeleteBucket: buckets.deleteBucket,
  GetBucketLocation: buckets.getBucketLocation,
  ListObjectsV2: buckets.listObjects,
  DeleteObjects: buckets.deleteObjects,
  PutObject: objects.putObject,
  CopyObject: objects.copyObject,
  GetObject: objects.getObject,
  HeadObject: objects.headObject,
  DeleteObject: objects.deleteObject,
  CreateMultipartUpload: multipart.createMultipartUpload,
  UploadPart: multipart.uploadPart,
  UploadPartCopy: multipart.uploadPartCopy,
  CompleteMultipartUpload: completeMultipartUpload,
  AbortMultipartUpload: multipart.abortMultipartUpload,
  ListParts: multipart.listParts,
  ListMultipartUploads: multipart.listMultipartUploads,
  HandFiles: handed.handFiles,
  HandRoom: handed.handRoom,
  HandPart: handed.takePartInRoom,
};

const writing: ReadonlySet<Operation> = new Set(['PutObject', 'CompleteMultipartUpload']);

/**
 * Serves the part of S3 that jobs use, from a directory, on the loopback interface.
 * What it does not do it refuses with NotImplemented.
 *
 * @throws {PortTakenError}
 */
export async function startS3Server(options: S3ServerOptions): Promise<S3Server> {
  const store = await ObjectStore.open(options.rootDir);
  const serving = { ...options, sessions: new BucketSessions(principalsOf(options)) };
  try {
    const listener = await listen((request, response) => serve(store, serving, request, response), {
      ...(options.port === undefined ? {} : { port: options.port }),
      deferContinue: true,
      ...(options.hosts === undefined ? {} : { hosts: options.hosts }),
    });
    return {
      endpoint: listener.endpoint,
      async createBucket(name) {
        if (!isBucketName(name))
          throw badRequest('InvalidBucketName', `The specified bucket is not valid: ${name}`);
        await store.createBucket(name, Date.now());
      },
      files: objectFilesOf(store),
      setAside: [...store.setAside],
      async emptyBucket(name) {
        const bucket = await store.bucket(name);
        const all = bucket.index.list({ prefix: '', delimiter: '', after: '', maxKeys: bucket.index.size });
        for (const entry of all.entries)
          if (entry.kind === 'object') await store.deleteObject(bucket, entry.key, {});
        for (const { uploadId } of await listUploads(bucket))
          await store.uploadLocks.run(uploadId, () => removeUpload(bucket, uploadId));
      },
      async close() {
        await listener.close();
        store.close();
      },
    };
  } catch (cause) {
    store.close();
    throw cause;
  }
}

async function serve(
  store: ObjectStore,
  options: Serving,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const requestId = randomBytes(8).toString('hex').toUpperCase();
  response.setHeader('x-amz-request-id', requestId);
  const body = { wanted: false };
  const wantBody = (): AsyncIterable<Buffer> => {
    if (!body.wanted && waitsToBeAsked(request)) response.writeContinue();
    body.wanted = true;
    return readBytes(request);
  };
  try {
    const reply = await answer(store, options, request, wantBody);
    if (reply === 'drop') {
      request.socket.destroy();
      return;
    }
    await send(response, reply);
  } catch (error) {
    // A client that went away gets no answer; the partial body is gone already.
    if (response.destroyed || response.headersSent) {
      response.destroy();
      return;
    }
    // A body that was announced but never asked for may or may not come: the connection is spoilt.
    if (!body.wanted && waitsToBeAsked(request)) response.setHeader('connection', 'close');
    sendError(request, response, requestId, error);
  }
}

async function answer(
  store: ObjectStore,
  options: Serving,
  request: IncomingMessage,
  body: () => AsyncIterable<Buffer>,
): Promise<Reply | 'drop'> {
  const target = parseTarget(request.url ?? '/', request.headers);
  const isDirectory = isDirectoryBucket(target.bucket);
  const signature = checkSigV4(request, {
    credentials: options.credentials,
    principals: isDirectory ? options.sessions : options.principals,
    region: options.region,
    service: isDirectory ? 's3express' : 's3',
  });
  if (!signature.ok) throw new S3Error(signature.status, signature.code, signature.message);
  const operation = chooseOperation(request.method ?? '', target);
  if (operation.startsWith('Hand') && options.handsFiles !== true) throw notImplemented(operation);
  if (isDirectory) {
    options.sessions.checkKeys(signature.accessKeyId, operation);
    refuseForDirectory(target);
  }
  const { bucket, key, query, headers } = target;
  const resource = key === '' ? bucket : `${bucket}/${key}`;
  const facts = { service: 's3', operation, resource, query, headers } as const;
  const { payloadHash, principal } = signature;
  const mode = operation === 'CreateSession' ? grantedMode(principal, facts) : undefined;
  const denial = mode === undefined ? principal.authorize?.(facts) : undefined;
  if (denial !== undefined) throw new S3Error(403, 'AccessDenied', denial);
  const source = objects.copySourceOf(headers);
  const fault = await awaitFault(options.onRequest, {
    ...{ service: 's3', operation, resource },
    ...(source === undefined ? {} : { source }),
  });
  if (fault.kind === 'drop') return 'drop';
  if (fault.kind === 'error') throw new S3Error(fault.status, fault.code, 'This failure was asked for.');
  if (operation === 'CreateSession') {
    await store.bucket(bucket);
    return options.sessions.open(principal, bucket, mode ?? 'ReadOnly');
  }
  const s3Request: S3Request = { ...target, payloadHash, principal, body };
  const served = async (): Promise<Reply> => {
    try {
      return await HANDLERS[operation](store, s3Request, options.region);
    } catch (cause) {
      throw asTold(cause, operation, s3Request, source);
    }
  };
  const { slowdown } = fault;
  const reply = slowdown === undefined ? await served() : await slowed(slowdown, served);
  if (writing.has(operation) && reply.status === 200) {
    const harm = options.onWritten?.({ bucket, key });
    if (harm !== undefined) await harmObject(store, { bucket, key }, harm);
  }
  return reply;
}

const reading: ReadonlySet<Operation> = new Set(['GetObject', 'HeadObject', 'CopyObject', 'UploadPartCopy']);

/** Who may not list a bucket is not told by it that a key is not there. Directory buckets, which have sessions, tell it. */
function asTold(cause: unknown, operation: Operation, request: S3Request, source = request.bucket): unknown {
  const [bucket = ''] = source.split('/', 1);
  if (!(cause instanceof S3Error) || cause.code !== 'NoSuchKey') return cause;
  if (!reading.has(operation) || isDirectoryBucket(bucket)) return cause;
  const asked = { service: 's3', operation: 'ListObjectsV2', resource: bucket } as const;
  const denial = request.principal.authorize?.(asked);
  return denial === undefined ? cause : new S3Error(403, 'AccessDenied', denial);
}

/** The least that a request is taken to last, of those that are to last longer: with its connection, about a millisecond. */
const leastMs = 1;

/** Serves a request, and waits as many times as long; its body, if it has one, is sent as slowly. */
async function slowed(factor: number, serve: () => Promise<Reply> | Reply): Promise<Reply> {
  const began = performance.now();
  const reply = await serve();
  const tookMs = Math.max(leastMs, performance.now() - began);
  await sleep((factor - 1) * tookMs);
  return reply.file === undefined ? reply : { ...reply, file: { ...reply.file, slowdown: factor } };
}

function waitsToBeAsked(request: IncomingMessage): boolean {
  return request.headers.expect?.toLowerCase() === '100-continue';
}

async function* readBytes(request: IncomingMessage): AsyncGenerator<Buffer, void, undefined> {
  // Not destroyed when reading stops early: the error still has to be answered on that socket.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    if (!Buffer.isBuffer(chunk)) throw new TypeError('a request body must be read as bytes');
    yield chunk;
  }
}

async function send(response: ServerResponse, reply: Reply): Promise<void> {
  if (reply.file !== undefined) {
    await sendFile(response, reply, reply.file);
    return;
  }
  const text = reply.xml ?? reply.json;
  if (text === undefined) {
    // HEAD answers and 304 may tell the length of a body that they do not have.
    const bodiless =
      reply.status === 204 || reply.status === 304 || reply.headers?.['content-length'] !== undefined;
    response.writeHead(reply.status, { ...(bodiless ? {} : { 'content-length': '0' }), ...reply.headers });
    response.end();
    return;
  }
  const body = Buffer.from(text);
  response.writeHead(reply.status, {
    'content-type': reply.json === undefined ? 'application/xml' : 'application/json',
    'content-length': String(body.length),
    ...reply.headers,
  });
  response.end(body);
}

async function sendFile(response: ServerResponse, reply: Reply, file: FileBody): Promise<void> {
  const buffer = takeBuffer();
  try {
    const endByte = file.startByte + file.sizeBytes;
    for (let at = file.startByte; at < endByte || !response.headersSent;) {
      const { bytesRead } = await file.handle.read(buffer, 0, Math.min(buffer.length, endByte - at), at);
      if (bytesRead === 0 && at < endByte)
        throw new Error('an object file is shorter than its metadata says');
      if (!response.headersSent) response.writeHead(reply.status, reply.headers);
      at += bytesRead;
      const began = performance.now();
      await written(response, buffer.subarray(0, bytesRead));
      if (file.slowdown !== undefined) await sleep((file.slowdown - 1) * (performance.now() - began));
    }
    response.end();
  } finally {
    await file.handle.close();
  }
  // Only here: of an answer that was broken off nobody knows what is still under way.
  giveBuffer(buffer);
}

/** Resolves once the kernel has the bytes, so that the buffer may be used again. */
function written(response: ServerResponse, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const onClose = (): void => {
      reject(new Error('the client is gone'));
    };
    response.once('close', onClose);
    response.write(bytes, (error) => {
      response.off('close', onClose);
      if (error === null || error === undefined) resolve();
      else reject(error);
    });
  });
}

/** A disk that is full is named, but may have room again before clients give up: a job that runs does not end by it. */
function unforeseen(error: unknown): S3Error {
  const full = fullDiskText(error);
  return full === undefined
    ? new S3Error(500, 'InternalError', `We encountered an internal error: ${String(error)}`)
    : new S3Error(500, STORAGE_FULL, full);
}

function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  error: unknown,
): void {
  const known = error instanceof S3Error ? error : unforeseen(error);
  if (request.method === 'HEAD') {
    response.writeHead(known.status, known.headers);
    response.end();
    return;
  }
  const body = Buffer.from(
    errorDocument(known.code, known.message, (request.url ?? '/').split('?')[0] ?? '/', requestId),
  );
  response.writeHead(known.status, {
    'content-type': 'application/xml',
    'content-length': String(body.length),
    ...known.headers,
  });
  response.end(body);
}
