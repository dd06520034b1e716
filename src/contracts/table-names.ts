/**
 * Names of the tables of a stage of `sql`, one for each input: as `given`, else a stage's own, and `input`, `input2` … of objects.
 *
 * @param stages - The stage that each input is of; undefined where it is of objects.
 */
export function tableNames(
  stages: readonly (string | undefined)[],
  given?: readonly string[],
): readonly string[] {
  let sources = 0;
  return stages.map((stage, place) => {
    if (stage === undefined) sources++;
    return given?.[place] ?? stage ?? (sources === 1 ? 'input' : `input${String(sources)}`);
  });
}
