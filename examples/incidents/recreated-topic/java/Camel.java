import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.kafka.KafkaConstants;
import org.apache.camel.main.Main;

/** Camel BOOTSTRAP TOPIC CLIENT_ID GROUP: prints what its route reads until SIGTERM. */
public final class Camel {
    public static void main(String[] given) throws Exception {
        String from = "kafka:" + given[1] + "?brokers=" + given[0] + "&clientId=" + given[2] + "&groupId=" + given[3]
            + "&autoOffsetReset=earliest&autoCommitIntervalMs=1000";
        Main main = new Main();
        main.configure().addRoutesBuilder(new RouteBuilder() {
            @Override public void configure() {
                onException(Exception.class).process(one -> Say.say("E", one.getException()));
                from(from).process(one -> Say.say("R", one.getIn().getHeader(KafkaConstants.OFFSET),
                    one.getIn().getBody(String.class), one.getIn().getHeader(KafkaConstants.PARTITION)));
            }
        });
        main.run();
        Say.say("I", "end");
    }
}
