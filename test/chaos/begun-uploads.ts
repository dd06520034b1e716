import type { Answer, Subject } from './fault-proxy.ts';

/** Whoever is killed so soon after it was told of an upload may have said no word of it. */
const soonMs = 1_000;

/** Uploads that a service has begun, as far as no job can know them. */
export class BegunUploads {
  readonly #unseen = new Set<string>();
  /** Those that their beginner was told of and that no request has named so far, with the time. */
  readonly #unnamed = new Map<string, number>();
  readonly #kills: number[] = [];

  answered({ body }: Answer, isSeen: boolean): void {
    const begun = /<InitiateMultipartUploadResult.*<UploadId>([^<]+)</s.exec(body.toString('latin1'))?.[1];
    if (begun === undefined) return;
    if (isSeen) this.#unnamed.set(begun, Date.now());
    else this.#unseen.add(begun);
  }

  asked({ query, body }: Subject): void {
    for (const uploadId of this.#unnamed.keys())
      if (query.includes(uploadId) || body.includes(uploadId)) this.#unnamed.delete(uploadId);
  }

  /** A worker is killed now. */
  killed(): void {
    this.#kills.push(Date.now());
  }

  /** Whether nobody was told of an upload, or only one that was killed before it could note it. */
  isUnknown(uploadId: string): boolean {
    const begunAt = this.#unnamed.get(uploadId);
    if (begunAt === undefined) return this.#unseen.has(uploadId);
    return this.#kills.some((at) => at >= begunAt && at - begunAt < soonMs);
  }
}
