declare module 'asl-validator' {
  interface ValidationResult {
    readonly isValid: boolean;
    errorsText(separator?: string): string;
  }
  export default function validate(definition: unknown): ValidationResult;
}
