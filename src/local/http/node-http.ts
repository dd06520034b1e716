/*
 * What is used of `node:http`. To import that as a module makes Node read all that it exports, and with `WebSocket` load
 * the whole of `fetch`: 40 ms of the start of each process, for nothing. Taken so, it is loaded alone.
 */
export const { Agent, createServer, request, validateHeaderName, validateHeaderValue } =
  process.getBuiltinModule('node:http');
