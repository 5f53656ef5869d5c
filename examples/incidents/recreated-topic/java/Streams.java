import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/** Streams PROTOCOL BOOTSTRAP TOPIC CLIENT_ID APPLICATION STATE_FOLDER: prints what it reads until SIGTERM. */
public final class Streams {
    public static void main(String[] given) throws Exception {
        Properties config = new Properties();
        config.put("group.protocol", given[0]);
        config.put("bootstrap.servers", given[1]);
        config.put("client.id", given[3]);
        config.put("application.id", given[4]);
        config.put("state.dir", given[5]);
        config.put("auto.offset.reset", "earliest");
        config.put("commit.interval.ms", "1000");
        config.put("num.stream.threads", "1");
        config.put("default.key.serde", Serdes.StringSerde.class.getName());
        config.put("default.value.serde", Serdes.StringSerde.class.getName());
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(given[2]).foreach((key, value) -> Say.say("R", -1, value, 0));
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.setStateListener((now, before) -> Say.say("I", "state", before, now));
        streams.setUncaughtExceptionHandler(thrown -> {
            Say.say("E", thrown.getClass().getSimpleName() + ":", thrown.getMessage());
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(5));
            ended.countDown();
        }));
        streams.start();
        ended.await();
    }
}
