"""The command: reads arguments, calls the engine, prints, exits. Judges nothing."""
