import io.vertx.kafka.client.consumer.KafkaConsumer;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Vertx BOOTSTRAP TOPIC CLIENT_ID GROUP: prints what it reads until SIGTERM. */
public final class Vertx {
    public static void main(String[] given) {
        String text = "org.apache.kafka.common.serialization.StringDeserializer";
        io.vertx.core.Vertx vertx = io.vertx.core.Vertx.vertx();
        KafkaConsumer<String, String> consumer = KafkaConsumer.create(vertx, Map.of(
            "bootstrap.servers", given[0], "client.id", given[2], "group.id", given[3], "key.deserializer", text,
            "value.deserializer", text, "auto.offset.reset", "earliest", "auto.commit.interval.ms", "1000"));
        consumer.exceptionHandler(thrown -> Say.say("E", thrown.getClass().getSimpleName() + ":", thrown.getMessage()));
        consumer.handler(one -> Say.say("R", one.offset(), one.value(), one.partition()));
        consumer.subscribe(given[1]).onFailure(thrown -> Say.say("E", thrown));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                consumer.close().toCompletionStage().toCompletableFuture().get(4, TimeUnit.SECONDS);
            } catch (Exception thrown) {
                Say.say("E", thrown);
            }
            Say.say("I", "end");
        }));
    }
}
