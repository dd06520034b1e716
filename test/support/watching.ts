/** Looks again and again while something runs, 10,000 times at most, and once when it has ended. Fails where a look does. */
export async function watched<T>(look: () => Promise<void>, run: () => Promise<T>): Promise<T> {
  const watch = { isOn: true };
  const watching = (async () => {
    for (let looks = 0; watch.isOn && looks < 10_000; looks++) {
      await look();
      await new Promise(setImmediate);
    }
  })();
  const outcome = await run();
  watch.isOn = false;
  await watching;
  await look();
  return outcome;
}
