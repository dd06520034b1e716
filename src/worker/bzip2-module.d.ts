declare module 'unbzip2-stream/lib/bit_iterator.js' {
  interface BitReader {
    (bits: number | null): number;
    readonly bytesRead: number;
  }
  /** Reads bits of buffers, which it asks for as it needs them. */
  const bitIterator: (nextBuffer: () => Uint8Array | undefined) => BitReader;
  export = bitIterator;
}

declare module 'unbzip2-stream/lib/bzip2.js' {
  import type bitIterator from 'unbzip2-stream/lib/bit_iterator.js';

  const bzip2: {
    /** Reads the head of a stream; answers its level, by which blocks hold 100,000 bytes before they are unpacked. */
    header(bits: ReturnType<typeof bitIterator>): number;
    /** Unpacks a block byte by byte; answers the checksum of the stream so far, or null at its end. */
    decompress(
      bits: ReturnType<typeof bitIterator>,
      onByte: (byte: number) => void,
      work: Int32Array,
      workSize: number,
      streamCrc: number,
    ): number | null;
  };
  export = bzip2;
}
