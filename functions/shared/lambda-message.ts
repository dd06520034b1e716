/** What went wrong by Lambda's message of it, without the request that it begins with. */
export const withoutRequest = (message: string): string =>
  message.replace(/^RequestId: \S+\s+(Error: )?/, '');
