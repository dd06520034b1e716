/** As on AWS: what passes between states. */
export const MAX_PAYLOAD_BYTES = 262_144;
