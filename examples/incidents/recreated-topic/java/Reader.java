import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Reader MODE BOOTSTRAP TOPIC CLIENT_ID GROUP [key=value ...]: prints what it reads, or what it wrote, until SIGTERM. */
public final class Reader {
    static final AtomicBoolean ended = new AtomicBoolean();

    static void error(Throwable thrown) throws InterruptedException {
        Say.say("E", thrown.getClass().getSimpleName() + ":", thrown.getMessage());
        Thread.sleep(300);
    }

    public static void main(String[] given) throws Exception {
        String mode = given[0];
        Properties config = new Properties();
        config.put("bootstrap.servers", given[1]);
        config.put("client.id", given[3]);
        for (int i = 5; i < given.length; i++) {
            String[] pair = given[i].split("=", 2);
            config.put(pair[0], pair[1]);
        }
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ended.set(true);
            try { main.join(5000); } catch (InterruptedException ignored) { }
        }));
        if (mode.equals("transactions")) transactions(config, given[2], given[4]);
        else if (mode.equals("share")) share(config, given[2], given[4]);
        else consume(config, mode, given[2], given[4]);
        Say.say("I", "end");
    }

    static void consume(Properties config, String mode, String topic, String group) throws Exception {
        config.put("group.id", group);
        config.putIfAbsent("auto.offset.reset", "earliest");
        config.put("auto.commit.interval.ms", "1000");
        config.put("metadata.max.age.ms", config.getOrDefault("metadata.max.age.ms", "300000"));
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            if (mode.equals("assign")) consumer.assign(List.of(new TopicPartition(topic, 0)));
            else consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                public void onPartitionsRevoked(Collection<TopicPartition> all) { Say.say("I", "revoked", all); }
                public void onPartitionsLost(Collection<TopicPartition> all) { Say.say("I", "lost", all); }
                public void onPartitionsAssigned(Collection<TopicPartition> all) { Say.say("I", "assigned", all); }
            });
            while (!ended.get()) {
                try {
                    for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(300)))
                        Say.say("R", one.offset(), one.value(), one.partition());
                } catch (Exception thrown) {
                    error(thrown);
                }
            }
        }
    }

    static void share(Properties config, String topic, String group) throws Exception {
        config.put("group.id", group);
        try (var consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (!ended.get()) {
                try {
                    for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(300)))
                        Say.say("R", one.offset(), one.value(), one.partition());
                } catch (Exception thrown) {
                    error(thrown);
                }
            }
        }
    }

    /** Ten records a transaction, five a second. */
    static void transactions(Properties config, String topic, String group) throws Exception {
        config.put("transactional.id", group);
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            for (int number = 0; !ended.get(); ) {
                try {
                    producer.beginTransaction();
                    for (int i = 0; i < 10 && !ended.get(); i++, number++) {
                        String value = "t-" + number;
                        producer.send(new ProducerRecord<>(topic, 0, null, value), (sent, thrown) -> {
                            if (thrown == null) Say.say("W", sent.offset(), value);
                            else Say.say("E", value, thrown.getClass().getSimpleName());
                        });
                        Thread.sleep(200);
                    }
                    producer.commitTransaction();
                    Say.say("I", "committed to", number);
                } catch (Exception thrown) {
                    error(thrown);
                    producer.abortTransaction();
                    Say.say("I", "aborted");
                }
            }
        }
    }
}
