/** The region of the embedded stack. */
export const localRegion = 'us-east-1';

/** The names of the zones that an embedded stack may have, as subnets and tasks are told them. */
export const zoneNames: readonly string[] = ['a', 'b', 'c', 'd', 'e', 'f'].map(
  (letter) => `${localRegion}${letter}`,
);

/** The id of a zone of the embedded stack, counted from 0, as Lambda tells it to what runs there. */
export const zoneIdOf = (place: number): string => `use1-az${String(place + 1)}`;

/** The id of the zone of that name; undefined where the embedded stack can have none. On AWS each account has others. */
export function zoneIdOfName(name: string): string | undefined {
  const place = zoneNames.indexOf(name);
  return place < 0 ? undefined : zoneIdOf(place);
}
