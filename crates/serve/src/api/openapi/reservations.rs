use serde_json::Value;

use super::operation::Operation;
use super::parameter::reservation_id;
use super::schemas::Schemas;
use crate::api::reservation::{
    EndedResponse, OpenResponse, RenewRequest, ReservationResponse, SettleRequest,
};
use crate::api::reserve::ReserveRequest;

pub(super) fn reserve(schemas: &mut Schemas) -> Value {
    let json = [("application/json", schemas.of::<OpenResponse>())];
    let headers = ["Location", "RateLimit", "RateLimit-Policy", "Idempotency-Replayed"];
    Operation::new("reservations", "reserve", "Take a reservation")
        .description(
            "Takes a reservation immediately, or waits for it (`wait_ms`), first come, first served on \
             each key. Only the same server instance can settle, release and renew it.",
        )
        .body(&schemas.of::<ReserveRequest>(), true)
        .response(201, "The reservation was granted.", &json, &headers)
        .problem(429, "A limit is exceeded, other requests are waiting, or the queue is full.")
        .idempotent(true)
        .for_clients()
        .into()
}

pub(super) fn get(schemas: &mut Schemas) -> Value {
    Operation::new("reservations", "reservation", "Get a reservation")
        .parameter(reservation_id())
        .json(
            200,
            "The reservation is open, or ended recently.",
            schemas.of::<ReservationResponse>(),
        )
        .problem(404, UNKNOWN)
        .problem(400, "Invalid path.")
        .for_clients()
        .into()
}

pub(super) fn settle(schemas: &mut Schemas) -> Value {
    let operation =
        Operation::new("reservations", "settle", "End a reservation and charge the actual cost")
            .description(
                "Succeeds only once; further attempts return how the reservation ended. The stated cost \
                 is charged even if it exceeds the reservation. A key that is charged more than its \
                 limit is in debt, and admits no requests until enough time has passed or `POST \
                 /v1/reset` is called.",
            )
            .body(&schemas.of::<SettleRequest>(), true);
    changes(operation, schemas.of::<EndedResponse>(), true)
}

pub(super) fn release(schemas: &mut Schemas) -> Value {
    let operation = Operation::new(
        "reservations",
        "release",
        "End a reservation without charging it",
    )
    .description(
        "For requests that were never sent. Succeeds only once; further attempts return how the \
                 reservation ended.",
    );
    changes(operation, schemas.of::<EndedResponse>(), false)
}

pub(super) fn renew(schemas: &mut Schemas) -> Value {
    let operation = Operation::new("reservations", "renew", "Extend a reservation")
        .body(&schemas.of::<RenewRequest>(), false);
    changes(operation, schemas.of::<OpenResponse>(), true)
}

/// Completes an operation that changes a reservation.
fn changes(operation: Operation, response: Value, has_body: bool) -> Value {
    let json = [("application/json", response)];
    operation
        .parameter(reservation_id())
        .response(200, "The reservation.", &json, &["Idempotency-Replayed"])
        .problem(404, UNKNOWN)
        .problem(
            409,
            "The reservation was already settled or released, or a request with the same \
             Idempotency-Key is still in progress.",
        )
        .problem(410, "The reservation expired, or was closed when the server stopped.")
        .idempotent(has_body)
        .for_clients()
        .into()
}

const UNKNOWN: &str = "No reservation has this id on this instance: it ended long ago, never existed, or was granted by \
     another instance.";
