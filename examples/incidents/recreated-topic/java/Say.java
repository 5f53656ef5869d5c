import java.util.Locale;

/** The lines that the rig counts. */
final class Say {
    static synchronized void say(String kind, Object... words) {
        StringBuilder line = new StringBuilder(kind);
        line.append(String.format(Locale.ROOT, " %.3f", System.currentTimeMillis() / 1000.0));
        for (Object word : words) line.append(' ').append(String.valueOf(word).replace('\n', ' '));
        System.out.println(line);
        System.out.flush();
    }
}
