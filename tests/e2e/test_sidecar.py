"""The sidecar is what any gRPC client expects, Python's own by the path of the socket; and a gateway takes any sidecar."""

import os
import struct
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from agents import Chat
from test_semantic import SENTENCE, start_sidecar

PACKAGE = "loopbreaker.embedding.v1"
SERVICE = f"{PACKAGE}.EmbeddingService"


@pytest.fixture
def channel(lab, tmp_path):
    """No options: whatever the client says as the authority is its own affair."""
    sidecar = lab._keep(start_sidecar(tmp_path))
    with grpc.insecure_channel(f"unix:{os.path.abspath(sidecar.socket)}") as channel:
        yield channel


def check_loop(channel):
    """The call, made of nothing but what the sidecar tells of itself."""
    pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    request, response = (
        GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.CheckLoop{end}")) for end in ("Request", "Response")
    )
    call = channel.unary_unary(
        f"/{SERVICE}/CheckLoop",
        request_serializer=request.SerializeToString,
        response_deserializer=response.FromString,
    )
    return lambda **fields: call(request(**fields), timeout=20)


def test_a_client_by_the_path_of_the_socket_is_answered_again_and_again(channel):
    health = health_pb2_grpc.HealthStub(channel)
    for service in ["", SERVICE, ""]:
        answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=20)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_a_client_without_generated_code_learns_the_call_and_makes_it(channel):
    check = check_loop(channel)
    words = "Let me look at the server logs again to find the error."
    assert not check(tenant_id="acme", prompt=words).loop_detected
    again = check(tenant_id="acme", prompt=words)
    assert again.loop_detected and again.similar_count == 1
    with pytest.raises(grpc.RpcError) as refused:
        check(tenant_id="", prompt=words)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT


class Foreign:
    """A sidecar of another make: it answers the three fields of the design document, and the same to everybody."""

    def __init__(self, folder, similarity):
        self.socket = str(folder / "foreign.sock")
        # loop_detected, max_similarity and similar_prompt, as protobuf writes them.
        answer = b"\x08\x01" + b"\x11" + struct.pack("<d", similarity) + b"\x1a\x01x"
        handlers = {"CheckLoop": grpc.unary_unary_rpc_method_handler(lambda request, context: answer)}
        self.server = grpc.server(ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
        self.server.add_insecure_port(f"unix:{self.socket}")
        self.server.start()

    def stop(self):
        self.server.stop(None)


def first_request(lab, folder, similarity, words="Please fix the parser.", **semantic):
    """Whether the model was told something at the very first request of a session, with the default policy."""
    foreign = lab._keep(Foreign(folder, similarity))
    mock = lab.mock()
    asked = {"backend": "sidecar", "sidecars": [foreign.socket], "timeout": "5s", **semantic}
    agent = Chat(lab.gateway(mock, {"semantic": asked}).url)
    agent.user(words)
    agent.ask()
    return SENTENCE in mock.requests()[-1].body.decode()


LITERAL = {"scope": "full", "history": "tenant"}


@pytest.mark.parametrize("words", ["Please fix the parser.", "Please fix this:\n```\nx = 1\n```"], ids=["words", "code"])
def test_by_the_literal_rule_one_similarity_of_any_sidecar_is_enough(lab, tmp_path, words):
    assert first_request(lab, tmp_path, 0.99, words, **LITERAL)


def test_the_gateways_own_threshold_is_asked(lab, tmp_path):
    assert not first_request(lab, tmp_path, 0.94, **LITERAL)


def test_one_similarity_is_no_loop_by_the_default_rule(lab, tmp_path):
    assert not first_request(lab, tmp_path, 0.99)
