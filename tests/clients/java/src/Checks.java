import java.util.Objects;

/** Assertions that end the program: a mismatch is a failed test, whatever the JVM's options are. */
final class Checks {
    private Checks() {}

    static void that(boolean condition, String message) {
        if (!condition) {
            throw new IllegalStateException(message);
        }
    }

    static void equal(Object expected, Object actual, String what) {
        that(Objects.equals(expected, actual), what + ": expected " + expected + ", got " + actual);
    }

    /** A point in time after which the check that uses it has failed. */
    static final class Deadline {
        private final long end;
        private final String what;

        Deadline(int seconds, String what) {
            this.end = System.nanoTime() + seconds * 1_000_000_000L;
            this.what = what;
        }

        void check(Object state) {
            that(System.nanoTime() < end, "timed out: " + what + "; " + state);
        }
    }
}
