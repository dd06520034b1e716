/** Told of a record that cannot be read and was set aside: where it lies, and what is wrong with it. */
export type ReportUnreadable = (record: { readonly key: string; readonly why: string }) => void;
