use redis::{AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, ErrorKind, RedisResult};

use crate::cause::NO_MASTER;
use crate::dial::{self, CONNECT_TIMEOUT};
use crate::tls::Tls;

/// Asks a Sentinel for the address of a master. `login` has the user, the password and the kind of
/// connection of the master.
///
/// A replica that a Sentinel still takes for the master refuses the heartbeat, after which the Sentinel is
/// asked again.
pub(super) async fn find_master(
    sentinel: &ConnectionInfo,
    name: &str,
    login: &ConnectionInfo,
    options: &AsyncConnectionConfig,
    tls: &Tls,
) -> RedisResult<ConnectionInfo> {
    let mut connection =
        dial::multiplexed(sentinel.clone(), options.clone(), CONNECT_TIMEOUT, tls).await?;
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let found: Option<(String, u16)> = command.query_async(&mut connection).await?;
    let (host, port) = found.ok_or((ErrorKind::MasterNameNotFoundBySentinel, NO_MASTER))?;
    let address = match login.addr() {
        ConnectionAddr::TcpTls { .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        }
        _ => ConnectionAddr::Tcp(host, port),
    };
    Ok(login.clone().set_addr(address))
}
