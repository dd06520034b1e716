/** The only source of ids from outside: everything else derives its id. */
export interface IdSource {
  /** 32 random hex digits. */
  token(): string;
  /** SHA-256 of a text, hex. */
  digest(text: string): string;
}
