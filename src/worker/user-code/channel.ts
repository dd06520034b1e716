import type { Socket } from 'node:net';
import { ProtocolError } from './protocol.ts';

/** One message as it came. The body is the receiver's own. */
export interface Message {
  readonly type: number;
  readonly body: Buffer;
}

/** Magic (2), type (1), number of the message (1), length of the body (4). */
const headerBytes = 8;
const magic = 0x4f52;

/**
 * Messages over a socket, in order. Sending never blocks; whoever sends much awaits `drained`. Reading takes one message
 * at a time, and the sender stalls when nobody reads.
 */
export class Channel {
  readonly #socket: Socket;
  readonly #mostBytes: number;
  #sent = 0;

  /** `mostBytes` bounds the bodies that are taken in. */
  constructor(socket: Socket, mostBytes: number) {
    this.#socket = socket;
    this.#mostBytes = mostBytes;
    // The end of the other side shows as the end of `messages`.
    socket.on('error', () => undefined);
  }

  /** The pieces must not change before they are `drained`. To a socket that has closed nothing is sent. */
  send(type: number, ...pieces: readonly Uint8Array[]): void {
    if (!this.#socket.writable) return;
    const header = Buffer.alloc(headerBytes);
    header.writeUInt16LE(magic, 0);
    header.writeUInt8(type, 2);
    header.writeUInt8(this.#sent++ & 0xff, 3);
    header.writeUInt32LE(
      pieces.reduce((sum, piece) => sum + piece.length, 0),
      4,
    );
    this.#socket.cork();
    this.#socket.write(header);
    for (const piece of pieces) if (piece.length > 0) this.#socket.write(piece);
    this.#socket.uncork();
  }

  /** Undefined where more may be sent at once; else resolves when it may, or never will. */
  drained(): Promise<void> | undefined {
    const socket = this.#socket;
    if (!socket.writableNeedDrain || socket.destroyed) return undefined;
    return new Promise((resolve) => {
      const settle = (): void => {
        socket.off('drain', settle).off('close', settle);
        resolve();
      };
      socket.once('drain', settle).once('close', settle);
    });
  }

  /** All messages until the other side closes or dies. Throws `ProtocolError` for bytes that are none. */
  async *messages(): AsyncGenerator<Message> {
    const pending = new ByteQueue();
    let received = 0;
    for await (const chunk of this.#chunks()) {
      pending.push(chunk);
      while (pending.length >= headerBytes) {
        const header = pending.peek(headerBytes);
        const length = header.readUInt32LE(4);
        const isNext = header.readUInt16LE(0) === magic && header.readUInt8(3) === (received & 0xff);
        if (!isNext || length > this.#mostBytes) throw new ProtocolError('bytes that are no message');
        if (pending.length < headerBytes + length) break;
        const type = header.readUInt8(2);
        pending.take(headerBytes);
        received++;
        yield { type, body: pending.take(length) };
      }
    }
  }

  async *#chunks(): AsyncGenerator<Buffer> {
    try {
      yield* this.#socket as AsyncIterable<Buffer>;
    } catch {
      // Reset by the other side's death, or destroyed by ours: the end, either way.
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** Bytes in the pieces in which they came; joined only where a message spans several. */
class ByteQueue {
  #pieces: Buffer[] = [];
  length = 0;

  push(piece: Buffer): void {
    this.#pieces.push(piece);
    this.length += piece.length;
  }

  /** The next `size` bytes, which must be there. */
  peek(size: number): Buffer {
    const [first] = this.#pieces;
    if (first !== undefined && first.length >= size) return first.subarray(0, size);
    const all = Buffer.concat(this.#pieces);
    this.#pieces = [all];
    return all.subarray(0, size);
  }

  take(size: number): Buffer {
    const taken = this.peek(size);
    this.length -= size;
    const [first = taken, ...rest] = this.#pieces;
    this.#pieces = first.length === size ? rest : [first.subarray(size), ...rest];
    return taken;
  }
}
