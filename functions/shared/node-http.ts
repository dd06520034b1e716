/*
 * Stands for `node:http` in bundles. To import that as a module makes Node read all that it exports, and with `WebSocket`
 * load the whole of `fetch`: 40 ms of each cold start, for nothing. Taken so, it is loaded alone.
 */
const http = process.getBuiltinModule('node:http');

// eslint-disable-next-line no-restricted-exports -- as the module that it stands for
export { http as default };

export const {
  Agent,
  ClientRequest,
  createServer,
  get,
  globalAgent,
  IncomingMessage,
  maxHeaderSize,
  METHODS,
  OutgoingMessage,
  request,
  Server,
  ServerResponse,
  setMaxIdleHTTPParsers,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} = http;
