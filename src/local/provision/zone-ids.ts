/** The id of a zone of the embedded stack, counted from 0, as Lambda tells it to what runs there. */
export const zoneIdOf = (place: number): string => `use1-az${String(place + 1)}`;
