/** Pages of a list, each asked for by the cursor that the one before gave: until one gives none, and at most so many. */
export async function* eachPage<Page extends { readonly cursor?: string }>(
  ask: (cursor: string | undefined) => Promise<Page>,
  most: number,
): AsyncGenerator<Page, void> {
  let cursor: string | undefined;
  for (let page = 0; page < most; page++) {
    const answer = await ask(cursor);
    yield answer;
    cursor = answer.cursor;
    if (cursor === undefined) return;
  }
}
