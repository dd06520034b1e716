declare module 'asl-validator' {
  interface ValidationResult {
    readonly isValid: boolean;
    errorsText(separator?: string): string;
  }
  function validate(definition: unknown): ValidationResult;
  export = validate;
}
